"""How faithful each attribution is to both bundled models, by attnviz's own deletion curves; writes the tables of docs/faithfulness.md.

    python -m benchmarks.faithfulness --sentences 40

Every text adds rows to `RESULTS`, which stands beside this file: a run that was stopped goes on where it was, and a run with more sentences
adds to those that are there. Ctrl-C writes the tables of what there is. After a change of a method, delete that file.
"""

import argparse
import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

import attnviz
from attnviz.corpus.sums import FEWEST_TEXTS
from attnviz.effects.attribution_methods import METHODS, AttributionMethod
from attnviz.effects.deletion import LEVEL, Deletion, RandomOrders, deletion_curves, mean_drops, random_orders
from attnviz.effects.input_attribution import attribute_inputs, available_methods
from attnviz.effects.outcome import Outcome, Similarity, TokenState, own_answer
from attnviz.effects.prompts import outcome_of_pair, prompts_of
from attnviz.effects.shapley import N_PERMUTATIONS
from attnviz.figures.numbers import counted, number_text, percent_text
from attnviz.maps.collection import bundled, sentences
from attnviz.maths.gradients import MOST_POINTS
from attnviz.maths.significance import p_value
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from attnviz.records import as_label
from ui.rooms.cause.prompts import OF_DECODERS

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

DOCS = Path(__file__).parents[1] / "docs" / "faithfulness.md"
START, END = "<!-- faithfulness: make faithfulness -->", "<!-- end of faithfulness -->"
RESULTS = Path(__file__).with_suffix(".csv")

SENTENCES = 25
"""Sentences if no number is given: nearly an hour of processor time, most of it integrated gradients of the language model."""
FEWEST_WORDS = 6
"""Of a sentence: orders of fewer tokens are few, and chance finds the best."""
N_ORDERS = 39
"""Random orders of each text: a method passes at p = 0.05 if at most one of them is as good, which chance reaches in 5% of texts."""
SEED = 0
"""Of the choice of sentences, the random orders and the bootstrap."""
SHAPLEY_SEED = 1
"""Of the permutations of Shapley values, which the same seed would make the random orders that judge them."""
N_REPLICATE = 10_000
"""Replicates of the bootstrap: the ends of an interval then have a standard error of under 1% of its length."""
INTERVAL = (0.025, 0.975)
"""Quantiles of the replicates: an interval of 95%."""
SLOW: frozenset[AttributionMethod] = frozenset({"integrated_gradients", "shapley"})
"""Measured last: on the language model each of these takes longer than all others together."""

TITLES: Mapping[str, str] = {
    "similarity": f"{EMBEDDED}: similarity with the next sentence",
    "state": f"{EMBEDDED}: state of [CLS]",
    "prompts": f"{SMOLLM2}: prompts",
    "sentences": f"{SMOLLM2}: next word of a sentence",
}
"""What is measured, by name; each has a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method on one text."""

    setting: str
    text: str
    method: AttributionMethod
    comprehensiveness: float
    """In the outcome's unit."""
    removed: float
    """How much larger the comprehensiveness is than that of random orders, in standard deviations of theirs."""
    kept: float
    """How much smaller the sufficiency is than that of random orders, in standard deviations of theirs."""
    passes: bool
    """Whether at most `LEVEL` of random orders would have this comprehensiveness."""
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over texts, and its interval, which NaN stands for where there are too few texts."""

    mean: float
    low: float
    high: float

    def written(self, form: "Form") -> str:
        """As a cell of a table."""
        if np.isnan(self.low):
            return form(self.mean)
        return f"{form(self.mean)} ({form(self.low)} to {form(self.high)})"


Form = Callable[[float], str]


@cache
def _model(name: str) -> attnviz.Model:
    return attnviz.load_model(name)


def texts() -> list[tuple[str, str]]:
    """The bundled sentences that are long enough, each with the one after it, in the random order in which they are measured."""
    lines = [line for _, line in sentences(bundled())]
    pairs = [pair for pair in pairwise(lines) if len(pair[0].split()) >= FEWEST_WORDS]
    return [pairs[number] for number in np.random.default_rng(SEED).permutation(len(pairs))]


def cases(setting: str, n_sentence: int) -> Iterator[tuple[attnviz.Model, "Trace", Outcome]]:
    """The texts of a setting, each with its outcome."""
    if setting == "prompts":
        model = _model(SMOLLM2)
        for pair in prompts_of(enumerate(OF_DECODERS, 1)).pairs:
            trace = model.trace(pair.clean)
            yield model, trace, outcome_of_pair(model, trace, pair)
        return
    for text, following in islice(texts(), n_sentence):
        if setting == "sentences":
            model = _model(SMOLLM2)
            trace = model.trace(text.rpartition(" ")[0])
            answer = own_answer(model, trace)
            assert answer is not None
            yield model, trace, answer
        else:
            model = _model(EMBEDDED)
            outcome = Similarity(text=following) if setting == "similarity" else TokenState(position=0)
            yield model, model.trace(text), outcome


def measured(
    setting: str,
    model: attnviz.Model,
    trace: "Trace",
    outcome: Outcome,
    methods: Sequence[AttributionMethod],
) -> list[Row]:
    """A row for each method on a text."""
    attributions = attribute_inputs(model, trace, outcome, methods=methods, seed=SHAPLEY_SEED)
    chance = random_orders(model, trace, outcome, n_orders=N_ORDERS, seed=SEED)
    return rows(
        setting, deletion_curves(model, trace, outcome, attributions, chance, most_points=1), chance, trace
    )


def rows(setting: str, deletion: Deletion, chance: RandomOrders, trace: "Trace") -> list[Row]:
    """A row for each curve."""
    removed, kept = (
        mean_drops(curves, chance.counts, chance.bins, base=deletion.base, direction=deletion.direction)
        for curves in (chance.removed, chance.removed[:, ::-1])
    )
    return [
        Row(
            setting=setting,
            text=trace.tokens.text,
            method=curve.method,
            comprehensiveness=curve.comprehensiveness,
            removed=advantage(curve.comprehensiveness, removed),
            kept=-advantage(curve.sufficiency, kept),
            passes=p_value(curve.n_as_good, len(removed)) <= LEVEL,
            converged=curve.converged,
        )
        for curve in deletion.curves
    ]


def advantage(area: float, by_chance: Float[np.ndarray, " order"]) -> float:
    """How much larger an area is than the mean of random orders, in standard deviations of these."""
    return float((area - by_chance.mean(dtype=np.float64)) / by_chance.std(ddof=1, dtype=np.float64))


def draws(n_text: int) -> Int[np.ndarray, "replicate text"]:
    """The texts of each replicate: as many as there are, drawn with replacement.

    Source: Efron 1979, "Bootstrap Methods: Another Look at the Jackknife" (Annals of Statistics 7:1-26), section 2.
    """
    return np.random.default_rng(SEED).integers(n_text, size=(N_REPLICATE, n_text))


def mean_of(numbers: Sequence[float]) -> Mean:
    """The mean over texts with the percentile interval of its bootstrap, which fewer than `FEWEST_TEXTS` texts do not have.

    Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3.
    """
    of_texts = np.array(numbers, dtype=np.float64)
    if len(of_texts) < FEWEST_TEXTS:
        return Mean(mean=float(of_texts.mean()), low=np.nan, high=np.nan)
    low, high = np.quantile(of_texts[draws(len(of_texts))].mean(axis=1), INTERVAL)
    return Mean(mean=float(of_texts.mean()), low=float(low), high=float(high))


def behind(of_method: Mapping[str, Row], of_first: Mapping[str, Row]) -> Mean:
    """How far a method's advantage is behind that of the first, over the texts that both have."""
    return mean_of(
        [of_first[text].removed - row.removed for text, row in of_method.items() if text in of_first]
    )


def table(measured_rows: Sequence[Row]) -> Iterator[str]:
    """The rows of one setting as Markdown, a line for each method of attnviz, the largest comprehensiveness first.

    Methods that have fewer texts than others come after these.
    """
    by_method: dict[AttributionMethod, dict[str, Row]] = {method: {} for method in METHODS}
    for row in measured_rows:
        by_method[row.method][row.text] = row
    there = {
        method: mean_of([row.removed for row in found.values()])
        for method, found in by_method.items()
        if found
    }
    order = sorted(there, key=lambda method: (-len(by_method[method]), -there[method].mean))
    yield "| method | texts | comprehensiveness | behind the first | sufficiency | better than random orders | in the outcome's unit |"
    yield "|---" * 7 + "|"
    for method in order:
        found = by_method[method]
        cells = [
            METHODS[method].title,
            str(len(found)),
            there[method].written(_deviations),
            "" if method == order[0] else behind(found, by_method[order[0]]).written(_deviations),
            mean_of([row.kept for row in found.values()]).written(_deviations),
            mean_of([row.passes for row in found.values()]).written(percent_text),
            number_text(float(np.mean([row.comprehensiveness for row in found.values()]))),
        ]
        yield f"| {' | '.join(cells)} |"
    for method in METHODS:
        if method not in there:
            yield f"| {METHODS[method].title} | 0 | | | | | |"


def _deviations(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def not_converged(measured_rows: Sequence[Row]) -> str:
    """In how many texts integrated gradients did not converge."""
    of_path = [row.converged for row in measured_rows if row.method == "integrated_gradients"]
    if not of_path:
        return "Integrated gradients were not measured here."
    return (
        f"Integrated gradients did not converge in {of_path.count(False)} of {counted(len(of_path), 'text')}."
    )


def lines(measured_rows: Sequence[Row]) -> Iterator[str]:
    """The section, line by line."""
    yield (
        f"{N_ORDERS} random orders of each text, {N_PERMUTATIONS} permutations for Shapley values, at most {MOST_POINTS} points for "
        f"integrated gradients; seed {SEED}, and {SHAPLEY_SEED} for the permutations."
    )
    for setting, title in TITLES.items():
        of_setting = [row for row in measured_rows if row.setting == setting]
        yield from ("", f"### {title}", "", *table(of_setting), "", not_converged(of_setting))


def read() -> list[Row]:
    """The rows that were measured."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(encoding="utf-8", newline="") as opened:
        return [
            Row(
                setting=row["setting"],
                text=row["text"],
                method=row["method"],  # type: ignore[arg-type]
                comprehensiveness=float(row["comprehensiveness"]),
                removed=float(row["removed"]),
                kept=float(row["kept"]),
                passes=row["passes"] == "True",
                converged=row["converged"] == "True",
            )
            for row in csv.DictReader(opened)
        ]


def add(new: Sequence[Row]) -> None:
    """Adds rows to those that were measured."""
    is_new = not RESULTS.exists()
    with RESULTS.open("a", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        if is_new:
            writer.writerow([field.name for field in fields(Row)])
        writer.writerows(
            [f"{cell:.6g}" if isinstance(cell, float) else cell for cell in astuple(row)] for row in new
        )


def measure(n_sentence: int) -> None:
    """Measures what is not there yet, the slow methods last."""
    there = {(row.setting, row.text, row.method) for row in read()}
    for is_slow in (False, True):
        for setting in TITLES:
            for model, trace, outcome in cases(setting, n_sentence):
                text = trace.tokens.text
                methods = [
                    method
                    for method in available_methods(model, trace, outcome)
                    if (method in SLOW and model.name == SMOLLM2) == is_slow
                    and (setting, text, method) not in there
                ]
                if methods:
                    add(measured(setting, model, trace, outcome, methods))
                    print(f"{setting}: {as_label(text)}: {', '.join(methods)}", flush=True)


def write() -> None:
    """Writes the tables between the marks."""
    section = "\n".join([START, *lines(read()), END])
    page = DOCS.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(START)}.*{re.escape(END)}", re.DOTALL)
    DOCS.write_text(pattern.sub(lambda _: section, page), encoding="utf-8")
    print(section)


def main() -> None:
    """Measures, and writes the tables into docs/faithfulness.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sentences", type=int, default=SENTENCES, metavar="N")
    try:
        measure(parser.parse_args().sentences)
    finally:
        write()


if __name__ == "__main__":
    main()
