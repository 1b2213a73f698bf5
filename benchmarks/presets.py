"""Where each example of the bundled language model shows what it is for: its head, query and key, measured in all heads.

``python -m benchmarks.presets`` prints the heads with the largest effects and writes ui/choice/presets.toml.

Sources: duplicate-token and induction heads, Olsson et al. 2022 (arXiv:2209.11895); the indirect object and the effect of a
head on the difference of two logits, Wang et al. 2022 (arXiv:2211.00593), sections 2.2 and 3; agreement, Linzen et al. 2016
(arXiv:1611.01368).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import torch
from jaxtyping import Float
from transformers.utils import logging

import attnviz
from attnviz.effects.ablation import ablate
from attnviz.effects.outcome import TokenAnswer, measured
from attnviz.figures.numbers import share_text
from attnviz.model.catalogue import SMOLLM2
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Head, bare
from ui.choice.presets import FILE, Preset

_FILLER = (
    "In spring the river flooded the old market twice, and the committee that the mayor had appointed reported that the bridge "
    "could be saved if the arches were raised and the road narrowed. The houses beside it, most of them empty since the flood, "
    "were bought and taken down."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A text, and the effect for which a head is sought in it."""

    name: str
    text: str
    find: Callable[[Model, Trace, "Example"], "Found"]
    answer: str = ""
    """What the model goes on with: its next token, as `attnviz.model.answers.token_id` reads it; empty for none."""
    against: str | None = None
    """The token that could stand there instead, for the difference of the two logits."""

    def outcome(self, trace: Trace) -> TokenAnswer | None:
        """The answer as an outcome at the last token."""
        if not self.answer:
            return None
        return TokenAnswer(position=len(trace.tokens) - 1, token=self.answer, against=self.against)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The size of the effect in every head, and the pair that shows it in the head where it is largest."""

    sizes: Float[np.ndarray, "layer head"]
    head: Head
    query: int
    key: int
    shows: str
    numbers: tuple[float, ...]


def repeats(trace: Trace) -> dict[int, int]:
    """Positions of the tokens that occur earlier in the text too, each with the last earlier position."""
    ids = trace.tokens.ids.tolist()
    return {
        at: before[-1] for at in range(len(ids)) if (before := [i for i in range(at) if ids[i] == ids[at]])
    }


def _largest(sizes: Float[np.ndarray, "layer head"]) -> Head:
    layer, head = np.unravel_index(np.nanargmax(np.abs(sizes)), sizes.shape)
    return Head(int(layer), int(head))


def _mean_weight(trace: Trace, pairs: dict[int, int]) -> Float[np.ndarray, "layer head"]:
    """The mean weight of queries on one key each, in every head."""
    sizes = np.full(trace.shape("decoder"), np.nan)
    for head in trace.heads("decoder"):
        weights = trace.weights(*head)
        sizes[head] = np.mean([weights[query, key] for query, key in pairs.items()])
    return sizes


def _by_weight(trace: Trace, pairs: dict[int, int], shows: str) -> Found:
    """The head with the largest mean weight of these pairs, and the strongest of them in that head."""
    sizes = _mean_weight(trace, pairs)
    head = _largest(sizes)
    weights = trace.weights(*head)
    query = max(pairs, key=lambda at: weights[at, pairs[at]])
    mean = float(sizes[head])
    return Found(
        sizes=sizes,
        head=head,
        query=query,
        key=pairs[query],
        shows=shows.format(share_text(mean)),
        numbers=(mean,),
    )


def induction(model: Model, trace: Trace, example: Example) -> Found:
    """A repeated token attends to what followed it before."""
    pairs = {at: earlier + 1 for at, earlier in repeats(trace).items() if earlier + 1 < at}
    return _by_weight(
        trace,
        pairs,
        "a repeated token gives {} of its attention, on average, to the token that followed it before",
    )


def duplicate(model: Model, trace: Trace, example: Example) -> Found:
    """A repeated token attends to where it was before."""
    pairs = {at: key for at, key in repeats(trace).items() if bare(trace.tokens.labels[at]).isalpha()}
    return _by_weight(
        trace, pairs, "a repeated token gives {} of its attention, on average, to where it stood before"
    )


def retrieval(model: Model, trace: Trace, example: Example) -> Found:
    """The last token attends to the answer, far back in the text."""
    [answer] = model.read_as(example.answer)
    key = trace.tokens.ids.tolist().index(answer)
    query = len(trace.tokens) - 1
    heaviest = _by_weight(trace, {query: key}, "")
    weight, probability = heaviest.numbers[0], _base(model, trace, example)
    label = bare(trace.tokens.labels[key])
    return Found(
        sizes=heaviest.sizes,
        head=heaviest.head,
        query=query,
        key=key,
        shows=f"the last token gives {share_text(weight)} of its attention to “{label}”, {query - key} tokens back, which the "
        f"model goes on with ({share_text(probability)})",
        numbers=(weight, probability),
    )


def _base(model: Model, trace: Trace, example: Example) -> float:
    """The outcome of the unchanged text."""
    outcome = example.outcome(trace)
    assert outcome is not None  # the example has an answer
    states = torch.tensor(trace.last_hidden_state)[None]
    return float(measured(model, trace, outcome)(states)[0])


def ablation(model: Model, trace: Trace, example: Example) -> Found:
    """The head whose zero ablation changes the answer most."""
    outcome = example.outcome(trace)
    assert outcome is not None
    effects = ablate(model, trace, measured(model, trace, outcome), kind="decoder")
    sizes = effects.heads - effects.base
    head = _largest(sizes)
    query = len(trace.tokens) - 1
    weights = trace.weights(*head)[query].copy()
    weights[0] = -1  # where heads rest
    before, after = float(effects.base), float(effects.heads[head])
    token = f"“{bare(example.answer)}”"
    if example.against is None:
        what, numbers = f"the probability of {token}", (share_text(before), share_text(after))
    else:
        what = f"the logit of {token} minus that of “{bare(example.against)}”"
        numbers = (f"{before:.2f}", f"{after:.2f}")
    verb = "falls" if after < before else "rises"
    return Found(
        sizes=sizes,
        head=head,
        query=query,
        key=int(weights.argmax()),
        shows=f"without this head {what} {verb} from {numbers[0]} to {numbers[1]}, the largest change of all heads",
        numbers=(before, after),
    )


EXAMPLES = (
    Example(
        name="Indirect object: Mary and John",
        text="When Mary and John went to the store, John gave a drink to",
        find=ablation,
        answer="␣Mary",
        against="␣John",
    ),
    Example(
        name="A fact: the capital of France", text="The capital of France is", find=ablation, answer="␣Paris"
    ),
    Example(
        name="Induction: a sequence repeated",
        text="Words: lamp river seven cloud marble tiger lamp river seven cloud marble tiger",
        find=induction,
    ),
    Example(
        name="Duplicate tokens: names repeated",
        text="Yesterday Anna met Tom in the park, and today Anna saw Tom at the station.",
        find=duplicate,
    ),
    Example(
        name="Agreement: the keys to the cabinet",
        text="The keys to the cabinet",
        find=ablation,
        answer="␣are",
        against="␣is",
    ),
    Example(
        name="Retrieval: a needle far back",
        text=f"The password is lantern. {_FILLER} The password is",
        find=retrieval,
        answer="␣lantern",
    ),
)


def preset_of(example: Example, trace: Trace, example_found: Found) -> Preset:
    """What is written about an example."""
    labels, outcome = trace.tokens.labels, example.outcome(trace)
    return Preset(
        name=example.name,
        text=example.text,
        query=bare(labels[example_found.query]),
        key=bare(labels[example_found.key]),
        at=(example_found.query, example_found.key),
        head=example_found.head,
        model=SMOLLM2,
        outcome="" if outcome is None else str(outcome),
        shows=example_found.shows,
        numbers=example_found.numbers,
    )


def strongest(sizes: Float[np.ndarray, "layer head"], count: int = 5) -> Iterator[str]:
    """The heads with the largest effects, in words."""
    for cell in np.argsort(-np.abs(np.nan_to_num(sizes)), axis=None)[:count]:
        layer, head = divmod(int(cell), sizes.shape[1])
        yield f"layer {layer}, head {head} {sizes[layer, head]:.3f}"


def main() -> None:
    """Prints the heads and writes the file."""
    logging.disable_progress_bar()
    model = attnviz.load_model(SMOLLM2)
    tables = []
    for example in EXAMPLES:
        trace = model.trace(example.text)
        example_found = example.find(model, trace, example)
        print(
            f"{example.name}: {example_found.shows}\n  " + "; ".join(strongest(example_found.sizes)),
            flush=True,
        )
        tables.append(_toml(preset_of(example, trace, example_found)))
    FILE.write_text("# Written by make showcases.\n" + "".join(tables), encoding="utf-8")


def _toml(preset: Preset) -> str:
    """One table of the file; JSON writes strings and lists as TOML does."""
    fields = {name: value for name, value in asdict(preset).items() if value not in (None, "", (), False)}
    fields["numbers"] = [round(number, 6) for number in preset.numbers]
    assert preset.head is not None  # each example has one
    fields["head"] = list(preset.head)
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(["", "[[presets]]", *lines, ""])


if __name__ == "__main__":
    main()
