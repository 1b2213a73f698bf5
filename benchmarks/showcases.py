"""Where the effect of each page is most visible: every example, head and query of the bundled models, measured.

``python -m benchmarks.showcases`` prints the largest of each example and writes the largest of all into
ui/choice/showcases.toml. Only examples that are offered for a model take part, of at most `LONGEST` tokens, so that every
token is drawn; queries and keys are words, never special tokens, punctuation or the token where a decoder's heads rest.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np
from scipy.special import softmax
from transformers.utils import logging

import attnviz
from attnviz.heads.claims import measure
from attnviz.lessons.order import shuffle
from attnviz.lessons.scaling import products_of, sharpness
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import bare
from ui.choice.presets import Preset, offered_presets
from ui.choice.showcases import FILE, Showcase

LONGEST = 24
Found = tuple[float, dict[str, object]]
"""The size of an effect, by which places are ranked, and the fields of its Showcase."""


def words(trace: Trace) -> np.ndarray:
    """Positions of the tokens that are words or the first piece of one; without the first token of a decoder's text."""
    labels, special = trace.tokens.labels, trace.tokens.is_special
    first = 1 if trace.kinds == ("decoder",) else 0
    return np.array(
        [at for at, label in enumerate(labels) if at >= first and bare(label).isalpha() and not special[at]]
    )


def _heads(trace: Trace) -> Iterator[tuple[int, int]]:
    yield from trace.heads()


def step_by_step(model: Model, trace: Trace) -> Iterator[Found]:
    """The largest weight of one word on another that is not its neighbour."""
    labels, at = trace.tokens.labels, words(trace)
    for layer, head in _heads(trace):
        weights = trace.weights(layer, head)
        for query in at:
            for key in at:
                if abs(key - query) > 1 and labels[key] != labels[query]:
                    weight = float(weights[query, key])
                    yield (
                        weight,
                        {
                            **{"layer": layer, "head": head, "query": int(query), "key": int(key)},
                            "effect": f"“{labels[query]}” gives “{labels[key]}” {{}} of its attention",
                            "numbers": (weight,),
                            "unit": "share",
                        },
                    )


def scaling(model: Model, trace: Trace) -> Iterator[Found]:
    """The largest fall of a row's entropy when scores are not scaled."""
    for layer, head in _heads(trace):
        products = products_of(trace, layer, head)
        scaled, unscaled = (sharpness(products.scores(scale)).entropy for scale in (products.scale, 1.0))
        for query in words(trace):
            before, after = float(scaled[query]), float(unscaled[query])
            yield (
                before - after,
                {
                    **{"layer": layer, "head": head, "query": int(query)},
                    "effect": f"entropy of the row of “{trace.tokens.labels[query]}”: {{}} of ln n scaled, {{}} unscaled",
                    "numbers": (before, after),
                    "unit": "share",
                },
            )


def positions(model: Model, trace: Trace) -> Iterator[Found]:
    """The word whose last hidden state turns furthest when the words are shuffled with random seed 0."""
    turned = shuffle(model, trace, seed=0)
    for query in words(trace):
        with_positions, without = (
            float(cosines[query]) for cosines in (turned.with_positions, turned.without_positions)
        )
        yield (
            with_positions - without,
            {
                "query": int(query),
                "effect": f"shuffled, “{trace.tokens.labels[query]}” turns by {{}} with positions, by {{}} without",
                "numbers": (with_positions, without),
                "unit": "1 − cosine",
                "seed": 0,
            },
        )


def kinds_of_attention(model: Model, trace: Trace) -> Iterator[Found]:
    """The largest share of a head's attention on later tokens; the query is the word with the largest share."""
    at = words(trace)
    for layer, head in _heads(trace):
        later = np.triu(trace.weights(layer, head), 1).sum(axis=1)
        share = float(later.mean())
        yield (
            share,
            {
                **{"layer": layer, "head": head, "query": int(at[later[at].argmax()])},
                "effect": "{} of the head's attention is to later tokens, which a causal mask forbids",
                "numbers": (share,),
                "unit": "share",
                "mask": "causal",
            },
        )


def claims(model: Model, trace: Trace) -> Iterator[Found]:
    """The most asymmetric head; the query is the word whose weight on another most exceeds the weight back."""
    measures, at = measure(trace), words(trace)
    for layer, head in _heads(trace):
        weights = trace.weights(layer, head)
        apart = (weights - weights.T)[np.ix_(at, at)]
        asymmetry = float(measures.weight_asymmetry[layer, head])
        yield (
            asymmetry,
            {
                **{"layer": layer, "head": head, "query": int(at[apart.max(axis=1).argmax()])},
                "effect": "asymmetry {}, where 0 is symmetric and 1 is one-way",
                "numbers": (asymmetry,),
                "unit": "asymmetry",
            },
        )


def history(model: Model, trace: Trace) -> Iterator[Found]:
    """The largest growth of a row's largest weight when scores are not scaled; on another word, and on the same."""
    labels, at = trace.tokens.labels, words(trace)
    for layer, head in _heads(trace):
        products = products_of(trace, layer, head)
        scaled, unscaled = (softmax(products.scores(scale), axis=-1) for scale in (products.scale, 1.0))
        for query in at:
            key = int(unscaled[query].argmax())
            if key != query and key in at and key == scaled[query].argmax():
                before, after = float(scaled[query, key]), float(unscaled[query, key])
                yield (
                    after - before,
                    {
                        **{"layer": layer, "head": head, "query": int(query), "key": key},
                        "effect": f"“{labels[query]}” gives “{labels[key]}” {{}} of its attention scaled, {{}} unscaled",
                        "numbers": (before, after),
                        "unit": "share",
                    },
                )


EFFECTS: dict[str, Callable[[Model, Trace], Iterator[Found]]] = {
    "Step by step": step_by_step,
    "Scaling": scaling,
    "Positions": positions,
    "Kinds of attention": kinds_of_attention,
    "Myths": claims,
    "History": history,
}
"""The effect of each page; Cost has none, since what it counts depends only on the number of tokens."""
PAGES = {EMBEDDED: tuple(EFFECTS), SMOLLM2: ("Step by step", "Scaling", "History")}
"""By model, the pages whose effect it shows: a decoder's tokens attend to no later ones, and its matrices are one-way."""


def candidates(model: Model) -> list[tuple[Preset, Trace]]:
    """The examples that take part."""
    traced = [
        (offered_preset, model.trace(offered_preset.text))
        for offered_preset in offered_presets(model.name, fills_blanks=False)
    ]
    return [(example, trace) for example, trace in traced if len(trace.tokens) <= LONGEST]


def largest(page: str, model: Model, preset: Preset, trace: Trace) -> tuple[float, Showcase]:
    """The place of one example where the effect of a page is largest."""
    size, fields = max(EFFECTS[page](model, trace), key=lambda candidate: candidate[0])
    labels = {
        f"{side}_label": trace.tokens.labels[fields[side]] for side in ("query", "key") if side in fields
    }
    return size, Showcase(page=page, model=model.name, preset=preset.name, **fields, **labels)


def main() -> None:
    """Prints the table and writes the showcases."""
    logging.disable_progress_bar()
    chosen = []
    for name, pages in PAGES.items():
        model = attnviz.load_model(name)
        examples = candidates(model)
        for page in pages:
            candidates_of_all = [largest(page, model, *example) for example in examples]
            best = max(candidates_of_all, key=lambda candidate: candidate[0])[1]
            chosen.append(best)
            for size, candidate in sorted(candidates_of_all, key=lambda candidate: -candidate[0]):
                place = (
                    "all heads"
                    if candidate.layer is None
                    else f"layer {candidate.layer}, head {candidate.head}"
                )
                mark = "*" if candidate is best else " "
                print(
                    f"{mark} {page:18} {size:6.3f}  {candidate.preset:30} {place:17} {candidate.words}",
                    flush=True,
                )
    FILE.write_text("# Written by make showcases.\n" + "".join(map(_toml, chosen)), encoding="utf-8")


def _toml(showcase: Showcase) -> str:
    """One table of the file; JSON writes strings and lists as TOML does."""
    fields = {name: value for name, value in asdict(showcase).items() if value is not None}
    fields["numbers"] = [round(number, 6) for number in showcase.numbers]
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(["", "[[showcases]]", *lines, ""])


if __name__ == "__main__":
    main()
