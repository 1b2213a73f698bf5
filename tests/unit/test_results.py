"""Every result shows itself: its numbers in a frame, its figure, its table in a notebook; compared with its arrays by loops."""

import importlib
import inspect
import math
import pickle
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape

import numpy as np
import pandas as pd
import pytest
from plotly import graph_objects as go

import attnviz
from attnviz.effects.ablation import ablate, ablate_layers, remove_in_order
from attnviz.effects.cell_effects import mask_cells
from attnviz.effects.deletion import deletion_curves, random_orders
from attnviz.effects.input_attribution import Attributions, attribute_inputs
from attnviz.effects.lens import follow_tokens, layer_similarities, lens
from attnviz.effects.logit_attribution import attribute_token
from attnviz.effects.needle import heads_off, needle
from attnviz.effects.outcome import TokenAnswer, TokenState
from attnviz.effects.over_pairs import mean_direct_effects, mean_head_effects, mean_patches
from attnviz.effects.patching import patch
from attnviz.effects.row_shuffle import shuffled_heads, shuffled_row
from attnviz.effects.score_sources import score_sources
from attnviz.errors import ArgumentError, SelectionError
from attnviz.figures.of_results import FIGURES
from attnviz.heads.score import score_of
from attnviz.heads.similarity import divergences
from attnviz.model.continuation import generate
from attnviz.records import WEIGHTS, Head, Result, Tokens
from tests import small_records

TEXT, OTHER = "the cat sat on a mat", "the dog sat on a mat"
HOSTILE = "<img onerror>"
Rows = list[list[object]]


def named(tokens: Tokens) -> Tokens:
    """The same tokens with a label that must not become an element of the page."""
    return replace(tokens, labels=(HOSTILE,) * len(tokens))


@pytest.fixture(scope="module")
def made(headed) -> dict[str, Result]:
    """Each result of a tiny GPT-2, by the name of its class."""
    model, _ = headed("gpt2")
    trace, donor = (replace(trace, tokens=named(trace.tokens)) for trace in map(model.trace, (TEXT, OTHER)))
    masked, _ = headed("bert")
    masked_trace = masked.trace(TEXT)
    masked_trace = replace(masked_trace, tokens=named(masked_trace.tokens))
    outcome, pairs = TokenAnswer(position=4, token="a", against="b"), (trace, donor)
    pattern = trace.pattern(1, 1)
    axes = trace.axes()
    attributions = attribute_inputs(model, trace, outcome, methods=["keys_masked", "norms"])
    patched = patch(model, trace, donor, outcome)
    report = attnviz.verify(model, model.trace(TEXT))
    check = replace(report.check(WEIGHTS), unit=HOSTILE)
    followed, answers = follow_tokens(model, trace, 4, ["a", "b"]), lens(model, trace, top=2)
    written, filled = generate(model, TEXT, n_tokens=3, top=2), attnviz.fill(model, "the cat", " sat", most=5)
    predicted, direct = attnviz.predict(model, trace, 4), attribute_token(model, trace, 4, "a")
    results = [
        ablate(model, trace, outcome),
        ablate_layers(model, trace, outcome),
        remove_in_order(model, trace, outcome, [Head(1, 1), Head(0, 0)]),
        mask_cells(model, trace, outcome, 1, 1),
        attnviz.alti(model, trace),
        attnviz.alti_logit(model, trace, 4, "a"),
        attnviz.decompx(masked, masked_trace, TokenState(position=2)),
        deletion_curves(
            model, trace, outcome, attributions, random_orders(model, trace, outcome, n_orders=5)
        ),
        attributions[0],
        Attributions(tokens=trace.tokens, methods=attributions),
        replace(attnviz.statistics(list(pairs), names=["previous", "distance", "cls"]), texts=(HOSTILE, "b")),
        attnviz.compare_heads(trace, donor),
        needle(model, "the cat", "a mat", "a", "mat", depths=[0.0, 1.0]),
        heads_off(model, trace, outcome, [Head(1, 1)], n_draws=2),
        replace(followed, labels=(HOSTILE, "b")),
        layer_similarities(model, trace),
        answers,
        direct,
        mean_direct_effects([direct, attribute_token(model, donor, 3, "a")]),
        mean_head_effects([ablate(model, of, outcome) for of in pairs]),
        mean_patches([patched, patch(model, donor, trace, outcome)]),
        patched,
        shuffled_heads(model, trace, 4),
        shuffled_row(model, trace, 1, 1, 4),
        score_sources(model, trace, 1, 1, 4, 2),
        attnviz.compare(pattern, donor.pattern(0, 1)),
        score_of(trace, 1, 1, 4, 2),
        attnviz.reach(trace).sinks,
        divergences(trace, None, *axes),
        replace(predicted, labels=(HOSTILE,) * len(predicted.labels)),
        replace(written, trace=replace(written.trace, tokens=named(written.tokens))),
        replace(filled, labels=(HOSTILE,) * len(filled.labels)),
        pattern,
        check,
        replace(report, checks=(*report.checks, check)),
        attnviz.project(trace, 1, 1, method="pca"),
    ]
    return {f"{type(result).__module__}.{type(result).__name__}": result for result in results}


def label(at: int) -> str:
    return f"{at} {HOSTILE}"


def of_heads(effects) -> Iterator[list[object]]:
    for layer, head in np.ndindex(effects.heads.shape):
        if not math.isnan(outcome := effects.heads[layer, head]):
            yield [layer, head, outcome, outcome - effects.base]


def of_layers(effects) -> Iterator[list[object]]:
    for layer, outcome in enumerate(effects.layers):
        yield [layer, outcome, outcome - effects.base]


def of_removal(removal) -> Iterator[list[object]]:
    for step, head in enumerate(removal.heads):
        yield [step + 1, head.layer, head.head, removal.outcomes[step], removal.outcomes[step] - removal.base]


def of_cells(cells) -> Iterator[list[object]]:
    for at, (query, key) in enumerate(zip(cells.queries.tolist(), cells.keys.tolist(), strict=True)):
        outcome = cells.outcomes[at]
        yield [label(query), label(key), cells.weights[at], cells.norms[at], outcome, outcome - cells.base]


def of_mixing(mixing) -> Iterator[list[object]]:
    for layer, query, key in np.ndindex(mixing.matrices.shape):
        yield [layer, label(query), label(key), mixing.matrices[layer, query, key]]


def of_alti_logit(found) -> Iterator[list[object]]:
    for at, number in enumerate(found.of_attention.tolist()):
        yield [label(at), number]
    direct = found.direct
    of_layers = [sum(map(float, part)) for part in (direct.mlps, direct.biases)]
    parts = [direct.embedding, *of_layers, direct.bias]
    named = zip(("start", "MLPs", "biases of the layers", "final biases"), parts, strict=True)
    yield from ([name, number] for name, number in named)
    yield ["sum", sum(parts) + sum(found.of_attention.tolist())]
    yield ["model", direct.total]


def of_decompx(found) -> Iterator[list[object]]:
    yield from ([label(at), number] for at, number in enumerate(found.values.tolist()))
    yield ["sum", sum(found.values.tolist())]
    yield ["model", found.total]


def of_deletion(deletion) -> Iterator[list[object]]:
    for curve in deletion.curves:
        for at, count in enumerate(deletion.counts.tolist()):
            yield [curve.method, count, curve.removed[at], curve.kept[at]]


def of_attribution(attribution) -> Iterator[list[object]]:
    for at, value in enumerate(attribution.values.tolist()):
        yield [at, label(at), value]


def of_attributions(attributions) -> Iterator[list[object]]:
    for at in range(len(attributions.tokens)):
        yield [at, label(at), *(attribution.values[at] for attribution in attributions.methods)]


def of_statistics(table) -> Iterator[list[object]]:
    for text, head in np.ndindex(table.numbers.shape[:2]):
        yield [table.texts[text], *table.heads[head], *table.numbers[text, head].tolist()]


def of_changes(changed) -> Iterator[list[object]]:
    found = [(-number, at) for at, number in np.ndenumerate(changed.changes)]
    yield from ([*at, -number] for number, at in sorted(found))


def of_followed(followed) -> Iterator[list[object]]:
    for layer, at in np.ndindex(followed.logits.shape):
        tables = followed.logits, followed.probabilities, followed.ranks
        yield [layer, followed.labels[at], *(table[layer, at] for table in tables)]


def of_similarities(similar) -> Iterator[list[object]]:
    for layer, at in np.ndindex(similar.similarities.shape):
        yield [layer, at, label(at), similar.similarities[layer, at]]


def of_lens(answers) -> Iterator[list[object]]:
    for layer, at in np.ndindex(answers.answer_ranks.shape):
        likeliest = answers.labels[layer][at][0], answers.probabilities[layer, at, 0]
        own = answers.answers[at], answers.answer_probabilities[layer, at], answers.answer_ranks[layer, at]
        yield [layer, at, label(at), *likeliest, *own]


def of_parts(parts) -> Iterator[list[object]]:
    yield [math.nan, "embedding", parts.embedding]
    for layer, heads in enumerate(parts.heads.tolist()):
        for head, number in enumerate(heads):
            yield [layer, f"head {head}", number]
        yield [layer, "MLP", parts.mlps[layer]]
        yield [layer, "biases", parts.biases[layer]]
    summed = parts.embedding + parts.bias
    summed += sum(map(float, [*parts.heads.ravel(), *parts.mlps, *parts.biases]))
    yield from ([math.nan, name, of] for name, of in (("final biases", parts.bias), ("sum", summed)))
    yield [math.nan, "model", parts.total]


def mean_and_spread(numbers) -> list[float]:
    first, second = map(float, numbers)
    mean = (first + second) / 2
    return [mean, math.hypot(first - mean, second - mean), first, second]  # n - 1 is 1


def of_mean_parts(over) -> Iterator[list[object]]:
    yield [math.nan, "embedding", *mean_and_spread(over.embedding.pairs)]
    for layer in range(len(over.mean.mlps)):
        for head in range(over.heads.pairs.shape[2]):
            yield [layer, f"head {head}", *mean_and_spread(over.heads.pairs[:, layer, head])]
        yield [layer, "MLP", *mean_and_spread(over.mlps.pairs[:, layer])]
        yield [layer, "biases", *mean_and_spread(over.biases.pairs[:, layer])]
    yield [math.nan, "final biases", *mean_and_spread(over.bias.pairs)]
    yield [math.nan, "model", *mean_and_spread(over.totals.pairs)]


def of_mean_heads(over) -> Iterator[list[object]]:
    yield [math.nan, math.nan, "clean outcome", *mean_and_spread(over.clean.pairs)]
    for layer, head in np.ndindex(over.mean.heads.shape):
        yield [layer, head, "effect", *mean_and_spread(over.effects.pairs[:, layer, head])]


def of_mean_patches(over) -> Iterator[list[object]]:
    for name, of in (("clean", over.clean), ("corrupted", over.corrupted)):
        yield [math.nan, math.nan, f"{name} outcome", *mean_and_spread(of.pairs)]
    for row, column in np.ndindex(over.mean.outcomes.shape):
        yield [row, column, "change", *mean_and_spread(over.changes.pairs[:, row, column])]


def of_needle(found) -> Iterator[list[object]]:
    for at, depth in enumerate(found.depths):
        places = sorted(np.ndindex(found.weights.shape[1:]), key=lambda head: -found.weights[at][head])
        for layer, head in places:
            yield [depth, layer, head, found.weights[at, layer, head], found.copied[at, layer, head]]


def of_off(off) -> Iterator[list[object]]:
    yield ["none", "", off.base, 0.0]
    yield ["best", " ".join(f"{layer}.{head}" for layer, head in off.heads), off.off, off.off - off.base]
    for at, heads in enumerate(off.drawn):
        named = " ".join(f"{layer}.{head}" for layer, head in heads)
        yield [f"random {at + 1}", named, off.random[at], off.random[at] - off.base]


def of_patches(patched) -> Iterator[list[object]]:
    for layer, at in np.ndindex(patched.outcomes.shape):
        outcome = patched.outcomes[layer, at]
        share = (outcome - patched.base) / (patched.donor - patched.base)
        yield [layer, at, label(at), label(at), outcome, share if patched.can_be_shared else math.nan]


def of_shuffled_heads(shuffled) -> Iterator[list[object]]:
    for layer, head in np.ndindex(shuffled.heads.shape):
        yield [layer, head, shuffled.heads[layer, head], shuffled.p_values[layer, head]]


def of_shuffled_row(row) -> Iterator[list[object]]:
    for at, order in enumerate(row.orders.tolist()):
        weights = [float(row.weights[number]) for number in order]
        key = int(row.keys[weights.index(max(weights))])
        yield [at + 1, label(key), row.changes[at], row.distances[at + 1]]


def of_sources(sources) -> Iterator[list[object]]:
    names = [source.short for source in sources.sources]
    cells = [
        [sources.scale * float(query @ key) for key in sources.key_vectors] for query in sources.query_vectors
    ]
    for name, row in zip(names, cells, strict=True):
        yield [name, *row, sum(row)]
    yield ["sum", *map(sum, zip(*cells, strict=True)), sum(map(sum, cells))]


def of_comparison(both) -> Iterator[list[object]]:
    first, second = both.first, both.second
    for query, key in np.ndindex(first.weights.shape):
        cells = [
            float(of.weights[query, key]) if of.allowed[query, key] else math.nan for of in (first, second)
        ]
        yield [label(query), label(query), label(key), label(key), *cells, cells[1] - cells[0]]


def of_score(score) -> Iterator[list[object]]:
    total = 0.0
    for at, (query, key) in enumerate(zip(score.query.tolist(), score.key.tolist(), strict=True)):
        total += query * key * score.scale
        yield [at, query, key, query * key * score.scale, total]


def of_divergences(divergent) -> Iterator[list[object]]:
    for at, head in enumerate(divergent.heads):
        yield [f"L{head.layer} H{head.head}", *divergent.divergence[at].tolist()]


def of_predictions(predicted) -> Iterator[list[object]]:
    for at, number in enumerate(predicted.ids.tolist()):
        yield [at + 1, number, HOSTILE, predicted.probabilities[at]]


def of_continuation(written) -> Iterator[list[object]]:
    for step, share in enumerate(written.probabilities.tolist()):
        pairs = zip(written.candidates[step], written.candidate_probabilities[step], strict=True)
        others = [cell for pair in pairs for cell in pair]
        yield [step + 1, written.n_read + step, HOSTILE, share, *others]


def of_infilling(filled) -> Iterator[list[object]]:
    for at, number in enumerate(filled.ids.tolist()):
        sides = filled.probabilities, filled.before_probabilities, filled.after_log_probabilities
        yield [at + 1, number, HOSTILE, *(side[at] for side in sides)]


def of_pattern(pattern) -> Iterator[list[object]]:
    for query, row in enumerate(pattern.weights.tolist()):
        seen = pattern.allowed[query].tolist()
        yield [
            label(query),
            *(cell if is_seen else math.nan for cell, is_seen in zip(row, seen, strict=True)),
        ]


def of_bins(binned) -> Iterator[list[object]]:
    for layer, head in np.ndindex(binned.shares.shape[:2]):
        yield [layer, head, *binned.shares[layer, head].tolist()]


def of_check(check) -> Iterator[list[object]]:
    for kind, table in check.differences.items():
        for layer, head in np.ndindex(table.shape):
            place = [layer, head if table.shape[1] > 1 else math.nan]
            yield [kind, *place, table[layer, head], check.tolerances[kind][layer, head]]


def of_report(report) -> Iterator[list[object]]:
    for check in report.checks:
        places = [(kind, at) for kind, table in check.differences.items() for at in np.ndindex(table.shape)]
        sizes = [
            float(check.differences[kind][at]) / (float(check.tolerances[kind][at]) or 1)
            for kind, at in places
        ]
        kind, at = places[sizes.index(max(sizes))]
        yield [check.name, check.unit, check.differences[kind][at], check.tolerances[kind][at], True]


def of_projection(placed) -> Iterator[list[object]]:
    for at, (x, y) in enumerate(placed.points.tolist()):
        yield [placed.role[at], label(int(placed.position[at])), x, y, "pca", "raw", ""]


ROWS: dict[str, Callable[[Result], Iterator[list[object]]]] = {
    "attnviz.effects.ablation.HeadEffects": of_heads,
    "attnviz.effects.ablation.LayerEffects": of_layers,
    "attnviz.effects.ablation.Removal": of_removal,
    "attnviz.effects.cell_effects.CellEffects": of_cells,
    "attnviz.effects.alti_logit.AltiLogit": of_alti_logit,
    "attnviz.effects.context_mixing.ContextMixing": of_mixing,
    "attnviz.effects.decompx.DecompX": of_decompx,
    "attnviz.effects.deletion.Deletion": of_deletion,
    "attnviz.effects.input_attribution.Attributions": of_attributions,
    "attnviz.effects.input_attribution.InputAttribution": of_attribution,
    "attnviz.effects.lens.FollowedTokens": of_followed,
    "attnviz.effects.lens.LayerSimilarities": of_similarities,
    "attnviz.effects.lens.Lens": of_lens,
    "attnviz.effects.logit_attribution.DirectEffects": of_parts,
    "attnviz.effects.needle.HeadsOff": of_off,
    "attnviz.effects.needle.NeedleHeads": of_needle,
    "attnviz.effects.over_pairs.MeanDirectEffects": of_mean_parts,
    "attnviz.effects.over_pairs.MeanHeadEffects": of_mean_heads,
    "attnviz.effects.over_pairs.MeanPatches": of_mean_patches,
    "attnviz.effects.patching.PatchEffects": of_patches,
    "attnviz.effects.row_shuffle.ShuffledHeads": of_shuffled_heads,
    "attnviz.effects.row_shuffle.ShuffledRow": of_shuffled_row,
    "attnviz.effects.score_sources.ScoreSources": of_sources,
    "attnviz.heads.comparison.Comparison": of_comparison,
    "attnviz.heads.reach.BinnedShares": of_bins,
    "attnviz.heads.score.Score": of_score,
    "attnviz.heads.similarity.Divergences": of_divergences,
    "attnviz.heads.tables.HeadChanges": of_changes,
    "attnviz.heads.tables.HeadTable": of_statistics,
    "attnviz.model.answers.Predictions": of_predictions,
    "attnviz.model.continuation.Continuation": of_continuation,
    "attnviz.model.infilling.Infilling": of_infilling,
    "attnviz.records.attention.AttentionPattern": of_pattern,
    "attnviz.records.checks.Check": of_check,
    "attnviz.records.checks.VerificationReport": of_report,
    "attnviz.records.points.Projection": of_projection,
}
"""The rows of each, from its arrays."""

WITHOUT_TOKENS = {
    name
    for name in ROWS
    if name.rpartition(".")[2]
    in {
        "BinnedShares",
        "Check",
        "Deletion",
        "DirectEffects",
        "Divergences",
        "HeadChanges",
        "MeanDirectEffects",
        "MeanHeadEffects",
        "MeanPatches",
        "NeedleHeads",
        "Removal",
        "Score",
        "ScoreSources",
    }
}

MATRICES = ("AttentionPattern", "Divergences", "ScoreSources")
results = pytest.mark.parametrize("name", ROWS)


def same(cell: object, wanted: object) -> bool:
    if isinstance(wanted, str | bool):
        return cell == wanted
    if math.isnan(float(wanted)):
        return bool(pd.isna(cell))
    return float(cell) == pytest.approx(float(wanted), rel=1e-4, abs=1e-6)


@results
def test_the_frame_has_the_numbers_of_the_arrays(made, name):
    result, wanted = made[name], list(ROWS[name](made[name]))
    frame = result.frame()
    is_matrix = type(result).__name__ in MATRICES
    rows = [list(row) for row in frame.itertuples(index=is_matrix, name=None)]
    assert [len(row) for row in rows] == [len(row) for row in wanted]
    for row, line in zip(rows, wanted, strict=True):
        assert all(same(cell, number) for cell, number in zip(row, line, strict=True)), (row, line)
    assert frame.columns.is_unique and frame.index.is_unique


@results
def test_numbers_are_numbers_whatever_stands_beside_them(made, name):
    wanted = list(ROWS[name](made[name]))
    frame = made[name].frame().reset_index(drop=type(made[name]).__name__ not in MATRICES)
    for at, column in enumerate(zip(*wanted, strict=True)):
        if not any(isinstance(cell, str | bool) for cell in column):
            assert pd.api.types.is_numeric_dtype(frame.dtypes.iloc[at]), frame.columns[at]


@results
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_figure_needs_no_other_argument(made, name, theme):
    figure = made[name].figure(theme=theme)
    assert isinstance(figure, go.Figure) and len(figure.data)
    assert HOSTILE not in figure.to_json()


@results
def test_a_notebook_shows_the_numbers_and_no_element_of_a_token(made, name):
    html = made[name]._repr_html_()
    headline = "checks passed" if name.endswith("Report") else f"<b>{type(made[name]).__name__}</b>"
    assert headline in html
    n_row = 40 if name.endswith("AttentionPattern") else 30
    for row in list(ROWS[name](made[name]))[:n_row]:
        for cell in row:
            if isinstance(cell, float | np.floating) and math.isfinite(cell) and abs(cell) > 1e-3:
                near = [f">{at:.4g}<" for at in (cell, cell * (1 + 2e-5), cell * (1 - 2e-5))]
                assert any(number in html for number in near), cell
    assert "<script" not in html and HOSTILE not in html
    assert ("&lt;img onerror&gt;" in html) == (name not in WITHOUT_TOKENS or name.endswith(".Check"))
    assert "currentColor" in html and "rgba(" in html


@results
def test_survives_another_process(made, name):
    again = pickle.loads(pickle.dumps(made[name]))
    assert again.csv() == made[name].csv()


def subclasses(kind: type) -> Iterator[type]:
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def test_every_result_is_drawn_and_tested(made):
    for package in ("effects", "heads", "maps", "model", "records"):
        folder = importlib.import_module(f"attnviz.{package}")
        for module in pkgutil.iter_modules(folder.__path__):
            importlib.import_module(f"{folder.__name__}.{module.name}")
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in subclasses(Result)}
    parts = "attnviz.effects.logit_attribution.DirectParts"  # the mean of DirectEffects, drawn as these
    assert set(FIGURES) | {"attnviz.effects.logit_attribution.DirectEffects"} == kinds
    assert set(ROWS) | {parts} == kinds
    assert set(made) == set(ROWS)


NOT_RESULTS = {
    "Trace": "has `show`, and a figure for each head",
    "Flow": "lines between entries of axes that it does not hold",
}


def drawn_records() -> Iterator[tuple[str, str]]:
    """Each function that draws, and the record that its first argument is."""
    figures = importlib.import_module("attnviz.figures")
    for module in pkgutil.iter_modules(figures.__path__):
        of = importlib.import_module(f"attnviz.figures.{module.name}")
        for name, function in inspect.getmembers(of, inspect.isfunction):
            if name.startswith("draw_") and function.__module__ == of.__name__:
                first = next(iter(inspect.signature(function).parameters.values()))
                written = str(getattr(first.annotation, "__name__", first.annotation)).strip("'\"")
                for word in written.replace("[", " ").replace("]", " ").replace(",", " ").split():
                    if word[0].isupper() and word.isidentifier():
                        yield name, word


def test_what_a_page_draws_is_a_result():
    known = {name.rpartition(".")[2] for name in FIGURES} | {"Result"}
    drawn = {word for _, word in drawn_records()}
    assert {"Lens", "PatchEffects", "Score", "AttentionPattern", "Removal"} <= drawn
    assert drawn - known <= {*NOT_RESULTS, "Sequence", "Float", "Kind", "Growth", "Literal"}, drawn - known


def test_a_result_without_a_figure_says_so(monkeypatch):
    monkeypatch.setattr("attnviz.figures.of_results.FIGURES", {})
    with pytest.raises(SelectionError, match="A figure of Projection was asked for"):
        small_records.projection().figure()


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError, match="pip install pandas"):
        small_records.pattern([[1.0]]).frame()


def test_a_token_that_looks_like_a_number_stays_a_text(made):
    followed = replace(made["attnviz.effects.lens.FollowedTokens"], labels=("1", "nan"))
    assert followed.frame()["answer"].tolist()[:2] == ["1", "nan"]


def test_the_frame_of_scores(door_trace):
    pattern = door_trace.pattern(3, 1)
    frame = pattern.frame(scores=True)
    assert frame.loc["7 it", "5 door"] == pattern.scores[7, 5]
    assert pattern.frame().loc["7 it", "5 door"] == pattern.weights[7, 5]


def test_a_long_table_says_what_is_left_out():
    n = 61
    pattern = small_records.pattern(np.full((n, n), 1 / n).tolist())
    html = pattern._repr_html_()
    assert html.count("<tr ") == 40 and "21 more rows and 21 more columns: frame() has all." in html


def test_shades_have_one_scale_in_a_matrix_and_one_for_each_column_elsewhere():
    html = small_records.pattern([[0.25, 0.75], [0.5, 0.5]])._repr_html_()
    assert [f"rgba(0,114,178,{alpha:.3f})" in html for alpha in (0.45, 0.3, 0.15)] == [True, True, True]
    assert html.count("rgba(0,114,178,0.450)") == 1
    points = np.array([[4.0, -1.0], [2.0, 0.5], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], np.float32)
    html = small_records.projection(points=points)._repr_html_()
    assert html.count("rgba(0,114,178,0.450)") == 1 and html.count("rgba(213,94,0,0.450)") == 1


def test_the_line_above_has_the_single_numbers_that_are_not_false():
    html = small_records.pattern([[1.0]], head=None)._repr_html_()
    assert "kind encoder, layer 0, measure weights</p>" in html
    assert "is renormalised</p>" in small_records.pattern([[1.0]], is_renormalised=True)._repr_html_()


def test_a_failed_check_is_told():
    assert "failed: attention weights" in small_records.report(weights=1.0)._repr_html_()


class TestTrace:
    def test_shows_the_stage_in_a_frame(self, door_trace):
        html = door_trace._repr_html_()
        assert html.startswith("<iframe sandbox=") and "door" in html

    @pytest.mark.parametrize("name", ["pattern", "scores", "query", "key", "value", "output"])
    @pytest.mark.parametrize("family", ["bert", "llama"])
    def test_gives_the_numbers_of_a_layer(self, tiny_model, name, family):
        trace = tiny_model(family).trace(TEXT)
        read = getattr(trace, {"pattern": "weights"}.get(name, name))
        of_layer = trace[name, 1]
        assert len(of_layer) == trace.n_heads(1) and not of_layer.flags.writeable
        for head in range(trace.n_heads(1)):
            np.testing.assert_allclose(of_layer[head], read(1, head), rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(trace[name, 1, head], read(1, head))

    @pytest.mark.usefixtures("types_unchecked")
    @pytest.mark.parametrize("at", ["pattern", ("patern", 1), ("query",), ("query", 0, 0, 0), 3])
    def test_names_what_there_is(self, door_trace, at):
        with pytest.raises(SelectionError, match="pattern, scores, query, key, value, output"):
            door_trace[at]

    def test_without_values_says_so(self):
        trace = attnviz.Trace.from_arrays(["a", "b"], weights=[[1.0, 0.0], [0.25, 0.75]])
        np.testing.assert_array_equal(trace["pattern", 0], [[[1.0, 0.0], [0.25, 0.75]]])
        for name in ("scores", "query", "output"):
            with pytest.raises(SelectionError, match="made of arrays without them"):
                trace[name, 0]

    def test_is_no_sequence(self, door_trace):
        with pytest.raises(TypeError, match="not iterable"):
            list(door_trace)


def test_a_verdict_says_what_it_is():
    """A printed report, and its short form, whether it passed or not."""
    report = attnviz.verify(*passed_one())
    assert repr(report) == "VerificationReport(all-MiniLM-L6-v2: all 13 checks passed)"
    lines = str(report).splitlines()
    assert len(lines) == 14 and lines[0] == "all-MiniLM-L6-v2: all 13 checks passed"
    assert lines[9].startswith("  passed  attention weights: ") and lines[9].endswith("(weight)")
    wrong = replace(report.check(WEIGHTS), differences={"encoder": np.ones((6, 12), dtype=np.float32)})
    failed = replace(report, checks=(wrong,))
    assert repr(failed) == "VerificationReport(all-MiniLM-L6-v2: failed: attention weights)"
    assert "FAILED  attention weights: 1 of at most" in str(failed)


def passed_one():
    model = attnviz.load_model("all-MiniLM-L6-v2")
    return model, model.trace("It opened.")


def test_effects_say_what_was_measured(made):
    words = "logit of “a” minus that of “b” predicted at “" + HOSTILE + "” (token 4)"
    for name in ("ablation.HeadEffects", "ablation.LayerEffects", "patching.PatchEffects"):
        effects = made[f"attnviz.effects.{name}"]
        assert effects.outcome == words and f"outcome {escape(words)}" in effects._repr_html_()
    patched = made["attnviz.effects.patching.PatchEffects"]
    same = replace(patched, donor=patched.base)
    assert "No shares: the outcomes of the two texts differ too little" in same._repr_html_()


def test_a_token_without_its_space_is_warned_of(smollm2):
    trace = smollm2.trace("When Mary and John went to the store, John gave a drink to")
    with pytest.warns(UserWarning, match="“Mary” is measured, with the probability .* “␣Mary” with 0.9"):
        attnviz.ablate(smollm2, trace, "answer:last:Mary", heads=[(0, 0)])
    with pytest.warns(UserWarning, match="“Mary” is measured") as told:
        attnviz.attribute(smollm2, trace, "answer:last:Mary", methods=["norms"])
    assert len(told) == 1
    attnviz.ablate(smollm2, trace, "answer:last: Mary", heads=[(0, 0)])  # a warning would fail


def test_heads_and_layers_that_have_none_in_common(embedded, door_trace):
    for asked in ({"heads": []}, {"heads": [(1, 0)], "layers": [0]}):
        with pytest.raises(SelectionError, match="No head was left"):
            ablate(embedded, door_trace, "state:1", **asked)


def test_what_people_try_first(made, embedded, door_trace):
    with pytest.raises(ArgumentError, match=r"Trace.to_html\(\) was given the text “x.html” as layer"):
        door_trace.to_html("x.html")
    with pytest.raises(ArgumentError, match="trace_chat"):
        embedded.trace([{"role": "user", "content": "a"}])
    written = made["attnviz.model.continuation.Continuation"]
    assert written.text == written.trace.tokens.text
