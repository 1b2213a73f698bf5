"""Many texts and Patching: what is drawn, listed and computed from hand-written records."""

import csv
import io
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.corpus.token_index import Nearest
from attnviz.effects.outcome import TokenState
from attnviz.effects.patching import PatchEffects, PathEnd
from attnviz.figures.numbers import number_text, share_text
from attnviz.figures.patching import draw_patching
from attnviz.maps.collection import Collection
from attnviz.maps.joint_map import joint_map
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.records import Head
from tests import hand_made, small_records
from tests.app.screen import alt, component, drawn, facts, figure, numbers, unescaped
from tests.app.views import LABELS, drawn_of, trace_of, view_of
from tests.drawn_parts import drawn as noted
from ui.rooms.compare.patching import heatmap, over_set
from ui.rooms.compare.patching import screen as patch_screen
from ui.rooms.many_texts.find_tokens import lines as found_lines
from ui.rooms.many_texts.joint_map import (
    drawing,
    matches,
    picked_token,
    reliability,
)
from ui.rooms.many_texts.joint_map import (
    joint_map as joint_map_section,
)
from ui.rooms.many_texts.joint_map import lines as lines_section
from ui.rooms.many_texts.joint_map.choices import JointMapSettings
from ui.rooms.many_texts.joint_map.joint_map import Screen

TEXTS = [["[CLS]", "cat", "door"], ["[CLS]", "door", "##s", "cat"]]
LINES = [2, 5]
FLAT = [(sentence, position) for sentence, text in enumerate(TEXTS) for position in range(len(text))]


def screen_of(seed: int = 0, *, bias: bool = False) -> Screen:
    traces = [trace_of(seed + number, text, n_layer=1) for number, text in enumerate(TEXTS)]
    calls = [
        replace(
            trace.attention(0),
            value=trace.attention(0).value[..., :0].copy(),
            bias=np.ones((1, len(trace.tokens), len(trace.tokens)), dtype=np.float32) if bias else None,
        )
        for trace in traces
    ]
    collection = Collection(
        tokens=tuple(trace.tokens for trace in traces),
        line=np.array(LINES),
        attention=tuple(calls),
        n_found=2,
        provenance=small_records.PROVENANCE,
    )
    scores = [collection.scores(number, 2) for number in range(2)]
    return Screen(collection=collection, head=2, map=joint_map(*collection.vectors(2), scores, method="pca"))


def labels() -> list[str]:
    return [f"{TEXTS[sentence][position]}·{position}" for sentence, position in FLAT]


@pytest.mark.parametrize("side", ["query", "key"])
@pytest.mark.parametrize("token", [None, 1, 5])
@pytest.mark.parametrize("hidden", [{}, {"special": "hidden"}, {"without_first": True}])
def test_the_map_with_its_lines(side, token, hidden, monkeypatch):
    screen = screen_of()
    asked = []
    real = drawing.draw_joint_map
    monkeypatch.setattr(
        drawing, "draw_joint_map", lambda *given, **named: asked.append(named) or real(*given, **named)
    )
    view = view_of(trace_of(0), joint_side=side, **hidden)
    at = drawn_of(view, lambda: drawing.draw(view, screen, None, token))
    points = screen.map.points
    assert f"Map of {len(points)} query and key vectors. Layer 0, head 2, 2 sentences." in alt(
        at, drawing.CHART
    )
    shown = [not hidden or position > 0 for _, position in FLAT]
    assert asked[0]["shown"].tolist() == shown
    vectors = [row for part in screen.collection.vectors(2) for row in part]
    assert asked[0]["lengths"].tolist() == pytest.approx([math.hypot(*map(float, row)) for row in vectors])
    marks = component(at, f"{drawing.CHART}_links")

    def marked(number: int, role: str, weight: float) -> dict[str, Any]:
        x, y = points[number + 7 * (role == "key")]
        return {
            "x": pytest.approx(float(x)),
            "y": pytest.approx(float(y)),
            "label": labels()[number],
            "role": role,
            "weight": pytest.approx(weight),
        }

    if token is None:
        assert marks["picked"] is None and marks["links"] == []
        return
    other = "key" if side == "query" else "query"
    sentence, position = FLAT[token]
    weights = screen.collection.weights(sentence, 2)
    row = weights[position] if side == "query" else weights[:, position]
    first = 0 if sentence == 0 else 3
    order = sorted(
        (number for number in range(len(row)) if row[number] > 0), key=lambda number: -row[number]
    )[:5]
    assert marks["picked"] == marked(token, side, 1.0)
    assert marks["links"] == [marked(first + index, other, float(row[index])) for index in order]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("hidden", [{}, {"special": "hidden"}, {"without_first": True}])
@pytest.mark.parametrize("space", ["raw", "centred", "balanced", "lifted"])
def test_what_is_said_of_a_joint_map(bias, hidden, space):
    screen = screen_of(bias=bias)
    made = replace(
        screen.map,
        space=space,
        method="umap",
        parameters={"iterations": 750, "min_dist": 0.125, "neighbours": 15},
        remark="Few points.",
    )
    screen = replace(screen, map=made)
    notes = drawing.notes(view_of(trace_of(0), **hidden), screen)
    assert notes.startswith(
        f"{METHOD_NAMES['umap']}, min dist 0.125, neighbours 15: 14 points of 7 tokens in 2 sentences. Few points."
    )
    assert ("adds a bias" in notes) == bias
    assert ("Special tokens are not drawn." in notes) == ("special" in hidden)
    assert ("first token of each sentence is not drawn" in notes) == ("without_first" in hidden)
    words = {
        "raw": "as the model has them",
        "centred": "mean over all sentences is zero",
        "balanced": "same median length",
        "lifted": "lifted so that",
    }
    assert [name for name, text in words.items() if text in notes] == [space]


def test_every_point_has_a_line():
    screen = screen_of()
    lines = list(csv.reader(io.StringIO(drawing.as_csv(screen).decode("utf-8-sig"))))
    assert lines[0] == ["role", "line", "token", "x", "y", "length"] and len(lines) == 15
    vectors = [row for part in screen.collection.vectors(2) for row in part]
    for number, line in enumerate(lines[1:]):
        sentence, position = FLAT[number % 7]
        assert line[:3] == [
            "query" if number < 7 else "key",
            str(LINES[sentence]),
            f"{position} {TEXTS[sentence][position]}",
        ]
        assert [float(cell) for cell in line[3:]] == pytest.approx(
            [*map(float, screen.map.points[number]), math.hypot(*map(float, vectors[number]))], rel=1e-5
        )


@pytest.mark.parametrize("side", ["query", "key"])
@pytest.mark.parametrize("token", [1, 5])
def test_the_sentence_of_the_selected_token(side, token, monkeypatch):
    led = []
    monkeypatch.setattr(picked_token, "link_to", lambda part, **named: led.append((part, named["selection"])))
    screen = screen_of(3)
    view = view_of(trace_of(0), joint_side=side, masked=(1,), second="b")
    at = drawn_of(view, lambda: picked_token.sentence(view, screen, token))
    sentence, position = FLAT[token]
    weights = screen.collection.weights(sentence, 2)
    row = weights[position] if side == "query" else weights[:, position]
    strongest = int(np.argmax(row))
    query, key = (position, strongest) if side == "query" else (strongest, position)
    strip = component(at, "token_strip")
    assert [chip["label"] for chip in strip["tokens"]] == TEXTS[sentence]
    assert [chip["position"] for chip in strip["tokens"] if chip["query"]] == [query]
    assert [part for part, _ in led] == ["Together", "Several heads", "Other maps"]
    for _, there in led:
        assert (there.query, there.key, there.layer, there.head) == (query, key, 0, 2)
        assert (there.text, there.second, there.masked, there.bundle) == (
            " ".join(TEXTS[sentence]),
            "",
            (),
            "",
        )
        assert not there.cut
    in_line = facts(at.markdown[0].value)
    assert in_line.numbers[:2] == (str(sentence + 1), str(LINES[sentence]))
    assert share_text(float(row[strongest])) in in_line.numbers
    words = {"query": ("query", "attends to"), "key": ("key", "gets attention from")}[side]
    own, other = TEXTS[sentence][position], TEXTS[sentence][strongest]
    assert f": {words[0]} “{own}” {words[1]} “{other}” " in unescaped(at.markdown[0].value)


def test_a_token_without_a_partner():
    collection = screen_of().collection
    assert [picked_token.in_words(collection, 4, side, []) for side in ("query", "key")] == [
        "Sentence 2, line 5: query “door” sees no key",
        "Sentence 2, line 5: no query gives weight to key “door”",
    ]


def test_a_key_without_weight_is_no_partner(monkeypatch):
    screen = screen_of()
    weights = np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 0.25, 0.75]], dtype=np.float32)
    monkeypatch.setattr(Collection, "weights", lambda self, sentence, head: weights)
    partners = picked_token.links(screen, 0, "query"), picked_token.links(screen, 0, "key")
    assert [[(link.token, link.weight) for link in side] for side in partners] == [
        [(0, 0.5), (2, 0.5)],
        [(1, 1.0), (0, 0.5)],
    ]


@pytest.mark.parametrize(("n_cut", "is_cut"), [((0, 0), False), ((3, 0), True), ((0, 3), True)])
def test_a_sentence_that_was_cut_is_opened_as_it_was_read(n_cut, is_cut):
    screen, led = screen_of(), []
    tokens = (replace(screen.collection.tokens[0], n_cut=n_cut), screen.collection.tokens[1])
    screen = replace(screen, collection=replace(screen.collection, tokens=tokens))
    with noted(picked_token, link_to=lambda part, **named: led.append(named["selection"].cut)) as page:
        picked_token.sentence(view_of(trace_of(0)), screen, 1)
    assert led == [is_cut] * 3
    assert page.all("container")[-1].named["horizontal"]  # links side by side


def test_a_click_on_a_chip_selects_the_query_of_its_sentence(monkeypatch):
    strips, changed = [], []
    monkeypatch.setattr(picked_token, "link_to", lambda *given, **named: None)
    monkeypatch.setattr(picked_token, "token_strip", lambda *given, **named: strips.append(named))
    monkeypatch.setattr(picked_token.state, "change", lambda **named: changed.append(named))
    view = view_of(trace_of(0), joint_side="key")
    drawn_of(view, lambda: picked_token.sentence(view, screen_of(), 5))
    strips[0]["on_pick"](3)
    assert changed == [{"joint_sentence": 1, "joint_token": 3, "joint_side": "query"}]
    weights = screen_of().collection.weights(1, 2)
    np.testing.assert_array_equal(strips[0]["weights"], weights[strips[0]["query"]])
    assert strips[0]["key"] == 2


@pytest.mark.parametrize(
    ("sentence", "token", "expected"),
    [(None, 0, None), (0, 2, 2), (1, 0, 3), (1, 3, 6), (2, 0, None), (0, 3, None), (1, 4, None)],
)
def test_the_number_of_the_selected_token(sentence, token, expected):
    view = view_of(trace_of(0), joint_sentence=sentence, joint_token=token)
    selected = []
    at = drawn(lambda: selected.append(picked_token.picked_token(view, screen_of())))
    assert selected == [expected]
    assert len(at.caption) == (expected is None and sentence is not None)


def test_a_token_is_selected_by_its_number(monkeypatch):
    changed = []
    monkeypatch.setattr(picked_token.state, "change", lambda **named: changed.append(named))
    collection = screen_of().collection
    for side, token in ((0, 0), (1, 6), (0, 7), (0, -1), (2, 1)):
        picked_token.pick(collection, side, token)
    assert changed == [
        {"joint_sentence": 0, "joint_token": 0, "joint_side": "query"},
        {"joint_sentence": 1, "joint_token": 3, "joint_side": "key"},
    ]


@pytest.mark.parametrize(
    ("matching", "counts"),
    [([], ()), ([2], ("1", "1")), ([1, 4], ("2", "2")), ([4, 6], ("2", "1"))],
)
def test_tokens_that_were_looked_for(matching, counts):
    screen = screen_of()
    view = view_of(trace_of(0), joint_search="cat")
    at = drawn_of(view, lambda: matches.matches(view, screen, np.array(matching, dtype=int), None))
    if not matching:
        assert "No token" in at.caption[0].value and not at.dataframe
        return
    assert facts(at.markdown[0].value).quoted == ("cat",) and facts(at.markdown[0].value).numbers == counts
    assert ("tokens in" in at.markdown[0].value) == (counts[0] != "1")
    assert at.markdown[0].value.endswith("sentences**") == (counts[1] != "1")
    table = at.dataframe[0].value
    assert table["sentence"].tolist() == [FLAT[number][0] + 1 for number in matching]
    assert table["token"].tolist() == [labels()[number] for number in matching]
    assert table["text"].tolist() == [" ".join(TEXTS[FLAT[number][0]]) for number in matching]


@pytest.mark.parametrize("sentences", ["own", "bundled"])
@pytest.mark.parametrize("own", ["", "my text"])
def test_whose_lines_are_shown(sentences, own):
    view, lines = view_of(trace_of(0), joint_sentences=sentences), []

    def draw() -> None:
        lines_section.of_session(lines_section.OwnSentences).text = own
        lines.append(lines_section.chosen_lines(view))

    at = drawn_of(view, draw)
    is_own = sentences == "own" and bool(own)
    assert (lines[0] == own) == is_own
    assert len(at.caption) == (sentences == "own")
    assert not at.caption or ("stay in this session" in at.caption[0].value) == is_own


@pytest.mark.parametrize("file", [None, b"the cat\nit", b"\xff", b" \n"])
def test_a_file_of_sentences(file, monkeypatch):
    """What is wrong with it is said, and the sentences before it stay."""
    own = lines_section.OwnSentences(text="before", problem="What was wrong before.", n_file=2)
    given, forgotten = None if file is None else SimpleNamespace(getvalue=lambda: file), []
    block = SimpleNamespace(session_state={"sentences_file_2": given})
    monkeypatch.setattr(lines_section.uploads, "forget", forgotten.append)
    with noted(lines_section, of_session=lambda kind: own, st=block) as page:
        lines_section._take_file()
    is_text = file == b"the cat\nit"
    shown = {"joint_sentences": "own", "joint_sentence": None, "profile_corpus": "own", "found_corpus": "own"}
    assert [change for change in page.changes if change] == [shown] * is_text
    assert own.text == ("the cat\nit" if is_text else "before")
    assert own.n_file == 2 + (file is not None) and forgotten == [given] * (file is not None)
    problem = {None: "What was wrong before.", b"the cat\nit": ""}.get(file)
    assert (
        own.problem == problem if problem is not None else own.problem not in ("", "What was wrong before.")
    )
    with noted(lines_section) as page:
        lines_section._show("bundled")
    assert page.changes == [shown | {"joint_sentences": "bundled", "profile_corpus": "", "found_corpus": ""}]


@pytest.mark.parametrize(
    "own", [lines_section.OwnSentences(), lines_section.OwnSentences(text="a", problem="b")]
)
@pytest.mark.parametrize("has_uploader", [True, False])
def test_where_sentences_are_given(own, has_uploader):
    uploaders: list[bool] = []
    with noted(lines_section, of_session=lambda kind: own) as page:
        lines_section.own_lines("Title", (lambda: uploaders.append(True)) if has_uploader else None)
    assert uploaders == [True] * has_uploader
    files = page.all("file_uploader")
    assert [named.named["max_upload_size"] for named in files] == [1] * (not has_uploader)
    assert page.texts == ["b"] * bool(own.problem)
    assert [call.named["key"] for call in page.all("button")] == ["show_bundled"] * bool(own.text)


@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_read_and_laid_out(is_known, monkeypatch):
    """Of the layer and the head that are selected, and of them alone."""
    jobs, collection = [], screen_of().collection

    def job(name, key, calls):
        jobs.append((name, key, calls()))
        return SimpleNamespace(results=[collection if name == "collection" else "map"])

    view = view_of(trace_of(0), layer=1, head=2, joint_method="umap", neighbours=7, min_dist=0.25, seed=5)
    monkeypatch.setattr(joint_map_section.jobs, "job", job)
    there = {"is_there": lambda *_, **__: is_known}
    with noted(lines_section, job=job, offer=lambda name: SimpleNamespace(name=f"{name}!"), **there):
        read = lines_section.read(view, "a\nb")
    with noted(joint_map_section, **there):
        screen = joint_map_section.lay_out(view, "a\nb", collection)
    (name, key, [(call, given, named)]), (_, map_key, [(make, inputs, settings)]) = jobs
    assert (name, call, given) == ("collection", lines_section.collect, ("m!", "a\nb", 1))
    assert key[-2:] == (1, "encoder") and named["kind"] == "encoder" and "progress" not in key
    assert (make, map_key[2:5]) == (joint_map, (1, "encoder", 2))
    assert map_key[5:] == ("umap", view.selection.of(JointMapSettings).space, 7, 0.25, 5)
    expected = {"method": "umap", "neighbours": 7, "min_dist": 0.25, "seed": 5}
    assert expected.items() <= settings.items() and len(settings) > len(expected) + 1
    for part, of_head in zip(inputs[:2], collection.vectors(2), strict=True):
        np.testing.assert_array_equal(part, of_head)
    for number, scores in enumerate(inputs[2]):
        np.testing.assert_array_equal(scores, collection.scores(number, 2))
    assert (read is collection, screen is not None) == (is_known, is_known)
    if screen is not None:
        assert (screen.head, screen.map, screen.collection) == (2, "map", collection)


@pytest.mark.parametrize("n_query", [0, 3, 7])
def test_what_the_figures_of_a_joint_map_are_over(n_query):
    made = screen_of().map
    sentences = reliability.note(replace(made, in_map=replace(made.in_map, n_query=n_query)))
    assert ("Within each sentence" in sentences) == bool(n_query)
    assert ("that see two keys or more" in sentences) == (n_query == 3)


@pytest.mark.parametrize("names", [[""], ["", "doors"]])
def test_texts_are_chosen_where_there_are_several(names):
    with noted(
        found_lines, corpora=lambda model: names, corpus_of=lambda view: names[-1], own_lines=lambda: None
    ) as page:
        found_lines.controls(view_of(trace_of(0)))
    assert len(page.all("selectbox")) == (len(names) > 1)
    if len(names) > 1:
        field = page.field("found_corpus")
        assert field["options"] == names and field["shown"][0].value("found_corpus") == "doors"


@pytest.mark.parametrize("layer", [0, 1])
def test_an_index_is_of_one_layer(layer):
    view = view_of(trace_of(0), layer=1, head=2)
    with noted(found_lines) as page:
        assert found_lines.is_of_layer(view, SimpleNamespace(layer=layer)) == (layer == 1)
    sentence = ["These texts are indexed in layer 0; layer 1 is selected."]
    assert page.texts == sentence * (layer == 0)
    assert [call.named["kwargs"] for call in page.all("button")] == [{"layer": 0}] * (layer == 0)


@pytest.mark.parametrize("kind", ["hidden", "query"])
@pytest.mark.parametrize("part", [None, "NOUN"])
def test_a_line_of_a_token_that_is_like_the_selected_one(kind, part):
    near = Nearest(
        similarity=0.5,
        token="cat",
        text="the cat ran",
        position=1,
        part=part,
        labels=("the", "cat", "ran"),
        key=2,
        weight=0.75,
    )
    view = view_of(trace_of(0), found_vectors=kind)
    index = SimpleNamespace(
        layer=0, n_token=5, n_text=2, recalls={}, n_passed=1, n_verified=1, worst_error=0, n_failed=0
    )
    screen = SimpleNamespace(view=view, index=index, head=3, nearest=[near], leaves_out=part is None)
    screen.token, screen.facts = "dog", SimpleNamespace(n=0)
    arcs, led = [], []
    with noted(
        found_lines,
        example_arcs=lambda *given, **named: arcs.append((*given, named["query"], named["marks_key"])),
        link_to=lambda *given, **named: led.append(named["selection"]),
    ) as page:
        found_lines.results(screen)
    assert page.texts == ["0.500" + (" :small[NOUN]" if part else "")]
    assert arcs == [(("the", "cat", "ran"), [0.0, 0.0, 0.75], 1, True)]
    assert [(there.text, there.layer, there.head, there.query, there.key) for there in led] == [
        ("the cat ran", 0, 3, 1, 2)
    ]
    about = found_lines.about(screen)
    assert ("as the head multiplies them" in about) == (kind != "hidden")
    assert ("The selected token itself is left out." in about) == (part is None)
    assert "that layer 0, head 3 attends to most" in about and "5 tokens of 2 texts were compared" in about
    assert found_lines.headline(screen) == "Layer 0, head 3: no other token is there to compare “dog” with"
    names, [row] = found_lines.as_csv_rows(screen)
    assert dict(zip(names, row, strict=True)) == {
        "similarity": 0.5,
        "token": "cat",
        "part": part or "",
        "position": 1,
        "attends to": "ran",
        "its position": 2,
        "weight": 0.75,
        "text": "the cat ran",
    }


# Patching


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"patch_carried": "mlp"}, {}),
        ({"patch_carried": "key", "patch_at": "each"}, {"layer": 1}),
        ({"patch_carried": "heads", "patch_at": "selected"}, {"position": 2}),
        ({"patch_carried": "heads", "patch_at": "all"}, {}),
        ({"patch_carried": "heads", "patch_at": "all", "patch_path": "outcome"}, {"end": PathEnd()}),
        (
            {"patch_carried": "heads", "patch_at": "selected", "patch_path": "value"},
            {"position": 2, "end": PathEnd(head=Head(1, 2), role="value")},
        ),
        ({"patch_carried": "query", "patch_at": "all", "patch_path": "outcome"}, {}),
    ],
    ids=str,
)
def test_which_states_are_carried_over(choice, expected):
    patches = patch_screen.patches_of(view_of(trace_of(0), **choice))
    assert (patches.kind, patches.carried) == ("encoder", choice["patch_carried"])
    for name in ("layer", "position"):
        assert getattr(patches, name) == expected.get(name)
    assert (patches.end is None) == ("end" not in expected)
    if patches.end is not None:
        assert (patches.end.head, patches.end.role) == (expected["end"].head, expected["end"].role)


def patching_of(kind: str = "encoder", **choice: Any) -> patch_screen.Screen:
    targets = None if kind != "cross" else ["a", "b", "c"]
    trace, donor = (trace_of(number, kind=kind, targets=targets) for number in (0, 1))
    return patch_screen.Screen(
        view=view_of(trace, **choice),
        outcome=TokenState(position=1),
        donor=donor,
        differing=(1,),
        differing_in_encoder=(),
    )


@pytest.mark.parametrize(
    ("choice", "rows", "n_cell", "times"),
    [
        ({"patch_carried": "mlp"}, 2, 10, 1),
        ({"patch_carried": "heads", "patch_at": "all"}, 2, 8, 1),
        ({"patch_carried": "heads", "patch_at": "each"}, 4, 20, 1),
        ({"patch_carried": "heads", "patch_at": "all", "patch_path": "outcome"}, 2, 8, 2),
        ({"patch_carried": "heads", "patch_at": "all", "patch_path": "key"}, 1, 4, 2),
    ],
    ids=str,
)
def test_how_many_states_are_carried_over(choice, rows, n_cell, times, monkeypatch):
    """A path takes two runs of the text, and none leads to a head from its own layer or a later one."""
    screen = patching_of(**choice)
    assert screen._rows == tuple(range(rows)) and screen.n_cells == n_cell
    assert screen.n_tokens == n_cell * times * 5
    made = []
    monkeypatch.setattr(
        patch_screen.Screen, "job", lambda self, name, key, calls: made.append((name, calls()))
    )
    monkeypatch.setattr(patch_screen.Screen, "_texts", property(lambda self: ("m",)))
    monkeypatch.setattr(patch_screen, "SHARES", 3)
    screen.patching_job()
    screen.gradient_job()
    [(_, calls), (name, gradient)] = made
    shared = [[*named["rows"]] for _, _, named in calls]
    assert len(shared) == min(3, rows) and sorted(row for some in shared for row in some) == [*range(rows)]
    assert max(map(len, shared)) - min(map(len, shared)) <= 1
    assert name == "attribution_patching" and len(gradient) == 1


def test_tokens_at_which_states_are_carried():
    for carried, of_keys in (("mlp", False), ("key", True), ("value", True), ("query", False)):
        screen = patching_of("cross", patch_carried=carried, patch_at="all")
        assert [len(token) for token in screen.tokens] == [5 if of_keys else 3] * 2
        expected = screen.donor.key_tokens("cross") if of_keys else screen.donor.query_tokens("cross")
        assert screen.tokens[1] is expected and screen.tokens[0] is not expected


@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_where_two_texts_differ(kind, monkeypatch):
    targets = None if kind == "encoder" else ["a", "b", "c"]
    trace = trace_of(0, kind=kind, targets=targets)

    def with_ids(tokens: Any, at: int) -> Any:
        ids = tokens.ids.copy()
        ids[at] = 99
        return replace(tokens, ids=ids)

    donor = replace(
        trace,
        tokens=with_ids(trace.tokens, 1),
        target_tokens=None if targets is None else with_ids(trace.target_tokens, 2),
    )
    asked = []
    monkeypatch.setattr(patch_screen.cache, "trace", lambda source: asked.append(source) or donor)
    view = view_of(trace, patch_text="another", masked=(1,))
    screen = patch_screen.screen_of(view, TokenState(position=1))
    assert (asked[0].text, asked[0].masked) == ("another", ())
    assert (screen.differing, screen.differing_in_encoder) == (
        ((1,), ()) if kind == "encoder" else ((2,), (1,))
    )


@pytest.mark.parametrize(
    ("choice", "fields"),
    [
        ({"patch_carried": "mlp"}, []),
        ({"patch_carried": "key", "patch_at": "all"}, ["field_patch_at"]),
        ({"patch_carried": "heads", "patch_at": "all"}, ["field_patch_at", "field_patch_path"]),
        ({"patch_carried": "heads", "patch_at": "each"}, ["field_patch_at"]),
    ],
    ids=str,
)
def test_the_controls_of_patching(choice, fields):
    view = view_of(trace_of(0), **choice)
    at = drawn_of(view, lambda: patch_screen.carried_controls(view))
    boxes = [element.key for element in at.selectbox] + [element.key for element in at.button_group]
    assert sorted(boxes) == sorted(["field_patch_carried", *fields])


def effects(seed: int, **changes: Any) -> PatchEffects:
    rng = np.random.default_rng(seed)
    given = {
        "kind": "encoder",
        "carried": "heads",
        "base": 0.25,
        "donor": 0.75,
        "outcomes": rng.integers(0, 17, (2, 4)).astype(np.float32) / 16,
    }
    return PatchEffects(**given | changes)


@pytest.mark.parametrize("carried", ["heads", "key", "mlp"])
@pytest.mark.parametrize("has_spread", [True, False])
def test_cells_of_patches(carried, has_spread):
    patched = effects(
        2, carried=carried, outcomes=np.random.default_rng(2).integers(4, 14, (2, 5)).astype(np.float32) / 16
    )
    spread = np.arange(10, dtype=np.float32).reshape(2, 5) / 8 if has_spread else None
    tokens, others = hand_made.tokens(LABELS), hand_made.tokens(["[CLS]", "box", "door", "##s", "[SEP]"])
    others = replace(others, ids=np.array([0, 9, 2, 3, 4]))
    drawn_ = draw_patching(patched, tokens, others, spread=spread, picked=3, differing=(1,))
    cells = drawn_.data[0]
    of_heads = carried != "mlp"
    names = {
        "heads": [f"head {at}·{at}" for at in range(5)],
        "key": [f"key-value head {at}·{at}" for at in range(5)],
        "mlp": ["[CLS]·0", "cat → box·1", "door·2", "##s·3", "[SEP]·4"],
    }[carried]
    for row, column in np.ndindex(2, 5):
        share = (float(patched.outcomes[row, column]) - 0.25) / 0.5
        assert float(cells.z[row][column]) == pytest.approx(share)
        hover = cells.hovertext[row][column]
        where, numbers_ = hover.split("<br>")
        assert where.startswith(f"layer {row}, {names[column].rsplit('·', 1)[0]}")
        assert f"share {number_text(share)}" in numbers_
        assert numbers_.endswith(f"outcome {number_text(float(patched.outcomes[row, column]))}")
        assert ("±" in numbers_) == has_spread
        if spread is not None:
            assert f"± {number_text(float(spread[row, column]) / 0.5)}" in numbers_
    axis = drawn_.layout.xaxis
    written = {"heads": "H", "key": "KV"}.get(carried)
    assert list(axis.ticktext) == (
        [f"{written}{at}" for at in range(5)]
        if of_heads
        else ["[CLS]", "● cat → box", "door", "##s", "[SEP]"]
    )
    assert len(drawn_.layout.shapes or ()) == (not of_heads)
    largest = max(1.0, max(abs(float(value) - 0.25) / 0.5 for value in patched.outcomes.ravel()))
    assert (cells.zmin, cells.zmax) == pytest.approx((-largest, largest))


@pytest.mark.parametrize("n_done", [0, 5])
def test_states_that_have_been_carried_so_far(n_done, monkeypatch):
    outcomes = np.full((2, 5), np.nan, dtype=np.float32)
    outcomes.ravel()[:n_done] = 0.5
    parts = [] if not n_done else [effects(0, carried="mlp", outcomes=outcomes)]
    screen = patching_of(patch_carried="mlp")
    at = drawn(lambda: heatmap.sofar(screen, SimpleNamespace(results=[None, *parts])))
    assert len(at.caption) == bool(n_done)
    if n_done:
        assert facts(at.caption[0].value).numbers == ("5", "10", "0")
        shown = numbers(figure(at, "patching_so_far")["data"][0]["z"]).astype(float)
        assert np.isfinite(shown).sum() == 5
        assert "Share" in alt(at, "patching_so_far") or "Change" in alt(at, "patching_so_far")


@pytest.mark.parametrize("n_pair", [1, 3])
@pytest.mark.parametrize("donor", [0.75, 0.25, -0.25])
def test_the_largest_share_over_pairs(n_pair, donor):
    mean = effects(5, donor=donor)
    spread = np.arange(8, dtype=np.float32).reshape(2, 4) / 32
    over_pairs = SimpleNamespace(mean=mean, changes=SimpleNamespace(n_pair=n_pair, spread=spread))
    run = SimpleNamespace(tokens=hand_made.tokens(LABELS))
    sentence = over_set.finding_of_set(run, over_pairs)
    assert sentence.startswith(heatmap.finding(run.tokens, mean))
    pairs = "1 pair" if n_pair == 1 else "3 pairs"
    shares = np.abs(mean.outcomes - 0.25) / abs(donor - 0.25) if donor != 0.25 else None
    if n_pair == 1 or shares is None or not mean.can_be_shared:
        assert sentence.endswith(f"(mean over {pairs})")
    else:
        place = np.unravel_index(int(shares.argmax()), shares.shape)
        off = float(spread[place]) / abs(donor - 0.25)
        assert sentence.endswith(f"(mean over {pairs}, standard deviation {100 * off:.0f}%)")
