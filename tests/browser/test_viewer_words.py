"""The viewer's numbers and sentences are the library's: the same rules in two languages, compared on random matrices of every kind."""

import json
import unicodedata
from base64 import b64encode
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from attnviz import viewer
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import number_text, percent_text, power_text, share_text, sum_text
from attnviz.heads.facts import NOTABLE
from attnviz.model.trace import Trace
from attnviz.records import MIXINGS, LayerAttention, Tokens
from attnviz.viewer.codes import Scale
from attnviz.viewer.data import head_bytes, layer_bytes, measures, stage_data
from tests.small_records import PROVENANCE
from ui.shell.view import View
from ui.words.findings import clipped_words, finding, place, strongest_key
from ui.words.headline import headline_words

SCRIPT = viewer.joined("numbers", "cells", "words")
UNITS, SPECIAL = ("tokens", "words"), ("shown", "hidden", "renormalised")
SENTENCES = ("all", "A → A", "A → B", "B → A", "B → B")
LABELS = ["the", "door", "door", "it", "##s", "##ing", "שלום", "[CLS]", "[SEP]", "␣a", "<b>"]
N_ROWS = 2000

STAGES = """
const stageOf = ({document, bytes}) => new Stage(document, Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0)));
"""
TOLD = """
return given.map(({document, bytes, asked}) => {
  const stage = stageOf({document, bytes});
  return asked.map(({selection, query, key}) => {
    const place = {layer: selection.layer, head: selection.head};
    const pattern = stage.told(place, selection);
    const drawn = stage.drawn(place, selection);
    const end = stage.colourEnd(drawn, selection);
    return {
      headline: headlineWords(pattern, query, key), finding: findingWords(pattern, query, key), place: placeWords(pattern),
      strongest: strongestKey(pattern, query), ranked: rankedKeys(pattern, query).map(({position}) => position),
      clipped: clippedWords(pattern, end), end, cells: [...pattern.weights], hidden: [...pattern.hidden],
      isRenormalised: pattern.isRenormalised, labels: [pattern.queries.labels, pattern.keys.labels],
    };
  });
});
"""


def in_browser(page, script, given):
    """What a script gives back; as JSON, which Playwright takes ten times as quickly as values."""
    called = f"(text) => {{ {SCRIPT} {STAGES} const work = (given) => {{ {script} }}; return JSON.stringify(work(JSON.parse(text))); }}"
    return json.loads(page.evaluate(called, json.dumps(given)))


def sent(data, cells):
    return {"document": msgspec.json.decode(data.written()), "bytes": b64encode(cells).decode()}


def text_of(rng, *, may_be_pair):
    """A few tokens, among them special ones, pieces of words and equal ones; perhaps of two texts, perhaps all special."""
    n_token = int(rng.integers(1, 9))
    several = LABELS[7:9] if rng.random() < 0.05 else LABELS
    labels = tuple(rng.choice(several, n_token).tolist())
    special = np.array([label.startswith("[") for label in labels])
    begins = np.array([not label.startswith("##") for label in labels]) & ~special
    is_pair = may_be_pair and n_token > 1 and rng.random() < 0.3
    second = (np.arange(n_token) >= rng.integers(1, n_token)) if is_pair else np.zeros(n_token, dtype=bool)
    return Tokens(
        text=" ".join(labels),
        text_pair="pair" if is_pair else None,
        ids=np.array([LABELS.index(label) for label in labels]),
        labels=labels,
        is_special=special,
        segment=second.astype(np.int64),
        word=np.where(special, -1, begins.cumsum()),
    )


def rows_of(rng, n_query, n_key, kind):
    """Weights of one head with many ties and close calls, and which keys are seen; perhaps none."""
    allowed = (
        np.tri(n_query, n_key, dtype=bool) if kind == "decoder" else np.ones((n_query, n_key), dtype=bool)
    )
    if kind != "decoder" and rng.random() < 0.3:
        allowed = rng.random((n_query, n_key)) < 0.7
    style = rng.integers(5)
    drawn = (
        rng.integers(0, 4, (n_query, n_key)).astype(float),
        rng.random((n_query, n_key)),
        np.exp(rng.normal(size=(n_query, n_key)) * 4),
        rng.choice([0.05, 0.1, 0.2, 0.3, 0.4], (n_query, n_key)),
        rng.choice([1, NOTABLE, 1e-8], (n_query, n_key)),
    )[style]
    drawn = np.where(allowed, drawn, 0)
    sums = drawn.sum(axis=1, keepdims=True)
    return np.divide(drawn, sums, out=np.zeros_like(drawn), where=sums > 0).astype(np.float32), allowed


def trace_of(rng):
    """One layer with two heads, whose weights are written down."""
    kind = str(rng.choice(["encoder", "decoder", "cross"]))
    queries = text_of(rng, may_be_pair=kind != "cross")
    keys = text_of(rng, may_be_pair=False) if kind == "cross" else queries
    n_query, n_key = len(queries), len(keys)
    heads = [rows_of(rng, n_query, n_key, kind) for _ in range(2)]
    with np.errstate(divide="ignore"):
        layer = LayerAttention(
            kind=kind,
            layer=0,
            query=np.stack([np.log(np.maximum(weights, 1e-30)) for weights, _ in heads]).astype(np.float32),
            key=np.broadcast_to(np.eye(n_key, dtype=np.float32), (2, n_key, n_key)).copy(),
            value=np.broadcast_to(np.eye(n_key, dtype=np.float32), (2, n_key, n_key)).copy(),
            scale=1.0,
            allowed=np.stack([allowed for _, allowed in heads]),
            output_weight=rng.choice([0.5, 1, 3], (2, n_key, 1)).astype(np.float32)
            * np.eye(n_key, dtype=np.float32),
        )
    last = np.zeros((n_query, 1), dtype=np.float32)
    return Trace(
        tokens=keys,
        target_tokens=queries if kind == "cross" else None,
        layers={kind: (layer,)},
        last_hidden_state=last,
        provenance=PROVENANCE,
    ), kind


def sent_in(trace, kind, measure):
    """The document with numbers in a measure; in one that takes the model, the mean of the heads stands for them."""
    if measure not in MIXINGS:
        return stage_data(trace, kind, measure=measure)
    cells, numbers = layer_bytes(whole_of(trace, kind, 0, measure))
    return msgspec.structs.replace(stage_data(trace, kind)[0], cells=cells), numbers


def whole_of(trace, kind, head, measure):
    if measure in MIXINGS:
        return replace(trace.pattern(0, None, kind), measure=measure)
    return trace.pattern(0, head, kind, measure=measure)


def pattern_of(trace, kind, selection, data, cells):
    """The library's pattern of a head with the numbers that were sent, and rows and columns as the app selects them."""
    known, measure = data.cells, selection["measure"]
    scale = Scale(**{name: getattr(known, name) for name in Scale.__slots__})
    numbers = scale.numbers(np.frombuffer(cells, "<u2")).reshape(-1, *trace.pattern(0, 0, kind).weights.shape)
    whole = whole_of(trace, kind, selection["head"], measure)
    numbers = numbers[0 if known.per_layer else selection["head"]]
    assert (np.isnan(numbers) == ~whole.allowed).all()
    whole = replace(whole, weights=np.nan_to_num(numbers), scores=None)
    view = view_of(trace, kind, selection)
    return view, whole.arranged(*view.axes_of(trace), renormalise=view.is_renormalised)


def view_of(trace, kind, selection):
    names = {"measure": "show", "withoutFirst": "without_first"}
    chosen = SimpleNamespace(**{names.get(name, name): value for name, value in selection.items()})
    return View(part=None, selection=chosen, query=0, trace=trace, kind=kind, theme="light", places=None)


def selection_of(rng, trace, kind, measure):
    return {
        "layer": 0,
        "head": int(rng.integers(2)),
        "measure": measure,
        "unit": str(rng.choice(UNITS)),
        "special": str(rng.choice(SPECIAL)),
        "withoutFirst": bool(rng.random() < 0.3),
        "sentences": str(rng.choice(SENTENCES)),
        "colour": "linear",
        "clip": True,
    }


def facts_of(view, pattern, query, key):
    row, end = pattern.queries.index(query), view.colour_end(pattern)
    cells = np.where(pattern.allowed, pattern.weights, np.nan)
    order = [] if row is None else np.argsort(-pattern.weights[row], kind="stable")
    return {
        "headline": headline_words(pattern, query, key),
        "finding": finding(pattern, query, key),
        "place": place(pattern),
        "strongest": strongest_key(pattern, query),
        "ranked": [int(pattern.keys.positions[at]) for at in order if pattern.allowed[row, at]],
        "clipped": clipped_words(pattern, end),
        "end": end,
        "cells": [None if np.isnan(cell) else cell for cell in cells.ravel().tolist()],
        "hidden": pattern.hidden_weight.tolist(),
        "isRenormalised": pattern.is_renormalised,
        "labels": [list(pattern.queries.labels), list(pattern.keys.labels)],
    }


@pytest.mark.stand_ins
def test_sentences_of_random_rows_are_the_library_s(page):
    """Encoders, decoders and cross-attention; masks, ties, special tokens, hidden or renormalised, words, sentences, all measures."""
    rng = np.random.default_rng(52)
    given, expected = [], []
    while sum(map(len, expected)) < N_ROWS:
        trace, kind = trace_of(rng)
        measure = str(
            rng.choice([shown for shown in (*measures(trace, kind), *MIXINGS) if shown != "scores"])
        )
        data, cells = sent_in(trace, kind, measure)
        asked, facts = [], []
        for _ in range(4):
            selection = selection_of(rng, trace, kind, measure)
            view, pattern = pattern_of(trace, kind, selection, data, cells)
            if not pattern.weights.size:
                continue  # no token of this sentence is left
            for _ in range(4):
                query = int(rng.integers(len(trace.query_tokens(kind))))
                key = int(rng.integers(len(trace.key_tokens(kind))))
                key = strongest_key(pattern, query) if rng.random() < 0.4 else key
                asked.append({"selection": selection, "query": query, "key": key})
                facts.append(facts_of(view, pattern, query, key))
        given.append({**sent(data, cells), "asked": asked})
        expected.append(facts)
    said = in_browser(page, TOLD, given)
    openings = set()
    for of_text, facts_of_text in zip(said, expected, strict=True):
        for here, there in zip(of_text, facts_of_text, strict=True):
            numbers = [here.pop("cells"), here.pop("hidden")], [there.pop("cells"), there.pop("hidden")]
            for mine, theirs in zip(*numbers, strict=True):
                mine = [np.nan if cell is None else cell for cell in mine]
                theirs = [np.nan if cell is None else cell for cell in theirs]
                np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6)
            assert here == there
            openings.add(
                next(
                    (
                        w
                        for w in ("mostly", "only", "spreads", "each of", "is not shown", "no ")
                        if w in here["headline"]
                    ),
                    "",
                )
            )
    assert len(openings) == 7  # every form was among them


SEVERAL = np.concatenate(
    [
        np.random.default_rng(0)
        .integers(0, 2**32, 60_000, dtype=np.uint64)
        .astype(np.uint32)
        .view(np.float32),
        np.random.default_rng(1).random(30_000, dtype=np.float32),
        np.arange(-4096, 4097, dtype=np.float32) / 4096,
        np.arange(2001, dtype=np.float32) / 2000,
        np.arange(2000, dtype=np.float32) / 2 + np.float32(995),
        np.float32(2) ** np.arange(-149, 128, dtype=np.float32),
    ]
)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("numberText", number_text),
        ("shareText", share_text),
        ("percentText", percent_text),
        ("sumText", sum_text),
        ("powerText", power_text),
    ],
)
def test_numbers_are_written_alike_by_both(page, name, written):
    """Ties are rounded to the even digit, which JavaScript's own functions do not."""
    numbers = [float(number) for number in SEVERAL if np.isfinite(number)]
    numbers += [1 - 5e-7, 1 - 1e-6, 1 - 2e-6, 0.0009995, 0.00099951, 999.5, 999_999.5, 0.00995, 1e21, 3e38]
    texts = in_browser(page, f"return given.map({name});", numbers)
    wrong = [(number, text) for number, text in zip(numbers, texts, strict=True) if text != written(number)]
    assert not wrong


def test_labels_that_run_from_right_to_left_are_isolated(page):
    labels = [label for label in map(chr, range(0x1F000)) if unicodedata.category(label) not in ("Cn", "Cs")]
    written = in_browser(page, "return given.map(isolated);", labels)
    wrong = [label for label, text in zip(labels, written, strict=True) if text != isolated(label)]
    assert not wrong


TEXTS = (
    "I was watching the door when it opened.",
    "The animal did not cross the street because it was too tired.",
    "Anna told Tom that she would come.",
    "Café Ümlaut, naïve façade!",
    "1 2 3 4 5 6 7 8 9 10",
    "antidisestablishmentarianism",
    "the the the the the the",
    "Rain fell. Nobody had brought an umbrella, and nobody cared.",
    "He said “no”; she said “yes” (twice).",
    "A man who never eats pork buns is never a man who never eats pork buns.",
)
CELLS = """
return given.map(({document, bytes, at}) => {
  const stage = stageOf({document, bytes});
  return at.map(([layer, head, row, column]) => {
    const {weights, keys, measure} = stage.whole({layer, head}, document.cells.measure);
    const number = weights[row * keys.labels.length + column];
    return [numberText(number), measureText(number, measure)];
  });
});
"""


@pytest.mark.parametrize("measure", ["weights", "scores", "norms", "rollout"])
def test_numbers_of_a_trained_model_are_written_with_its_digits(page, embedded, measure):
    rng = np.random.default_rng(7)
    given, expected = [], []
    for text in TEXTS:
        trace = embedded.trace(text)
        data, cells = stage_data(trace, "encoder", measure=measure)
        n_token = len(trace.tokens)
        places = [(int(rng.integers(6)), int(rng.integers(12))) for _ in range(8)]
        at = [[*places[n % 8], int(rng.integers(n_token)), int(rng.integers(n_token))] for n in range(200)]
        given.append({**sent(data, cells), "at": at})
        is_share, as_measured = (
            measure in ("weights", "rollout"),
            "weights" if measure == "scores" else measure,
        )
        of_head = cache(partial(trace.pattern, measure=as_measured))
        of_text = []
        for layer, head, row, column in at:
            pattern = of_head(layer, None if measure == "rollout" else head)
            number = float((pattern.scores if measure == "scores" else pattern.weights)[row, column])
            of_text.append([number_text(number), (share_text if is_share else number_text)(number)])
        expected.append(of_text)
    assert in_browser(page, CELLS, given) == expected


def test_numbers_that_come_later_are_those_of_their_head(page, embedded):
    """Of a text whose weights are not all sent at once; one that has not come has no pattern."""
    trace = embedded.trace("word " * 110)
    data, cells = stage_data(trace, "encoder", heads=[(1, 2)])
    more = head_bytes(trace, "encoder", 3, 1, "weights")
    script = """
      const [first, later] = given;
      const stage = stageOf(first);
      const before = stage.whole({layer: 3, head: 1}, "weights");
      stage.add(later.cells, Uint8Array.from(atob(later.bytes), (letter) => letter.charCodeAt(0)));
      return [before, ...[[3, 1], [1, 2]].map(([layer, head]) => [...stage.whole({layer, head}, "weights").weights])];
    """
    later = {"cells": msgspec.to_builtins(more[0]), "bytes": b64encode(more[1]).decode()}
    before, *after = in_browser(page, script, [sent(data, cells), later])
    assert before is None
    for numbers, place_ in zip(after, [(3, 1), (1, 2)], strict=True):
        np.testing.assert_allclose(numbers, trace.weights(*place_).ravel(), rtol=0, atol=5e-5)
