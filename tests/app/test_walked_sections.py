"""The steps of attention, with vectors drawn at random: each picture, table and sentence is worked out again in plain Python."""

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.figures.numbers import number_text, power_text, share_text
from attnviz.model.anatomy import LayerAnatomy, LinearMap
from attnviz.model.normalisation import Normalisation
from attnviz.model.trace import Trace
from attnviz.records import Head, LayerAttention
from tests import hand_made, small_records
from tests.app.screen import alt, component, drawn, facts, figure, numbers, unescaped
from tests.drawn_parts import PartOfView
from ui.rooms.how_it_works.step_by_step import film, outputs, scores, vectors
from ui.rooms.how_it_works.step_by_step.facts import Listed
from ui.rooms.how_it_works.step_by_step.walk import Walk, compare, listed_note

SHORT = ["[CLS]", "cat", "door", "##s", "[SEP]"]
LONG = ["[CLS]", *(f"w{at}" for at in range(14)), "[SEP]"]
N_HEAD, D_HEAD, D_VALUE, D_MODEL = 4, 4, 3, 6
PLACE = Head(1, 2)
LINKS: list[str] = []


@pytest.fixture(autouse=True)
def _without_other_pages(monkeypatch):
    LINKS.clear()
    for module in (scores, vectors):
        monkeypatch.setattr(module, "link_to", lambda part, **named: LINKS.append(part))


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers of which few are equal."""
    return (rng.integers(-40, 41, shape) / 16).astype(np.float32)


def walk_of(
    seed: int,
    *,
    labels: list[str] = SHORT,
    scale: float = 0.5,
    softcap: float | None = None,
    bias: str = "",
    masked: bool = False,
    n_kv: int = 4,
    layer: int = 1,
    anatomy: Any = None,
    query: int = 2,
    key: int = 1,
) -> Walk:
    """A selected pair in the third head; the scale 1/2 is that of four dimensions."""
    rng, n = np.random.default_rng(seed), len(labels)
    biases = None
    if bias:
        biases = whole(rng, N_HEAD, n, n)
        if bias == "distance":
            steps = whole(rng, N_HEAD, 2 * n)
            biases = steps[:, np.arange(n)[None] - np.arange(n)[:, None]]
    allowed = None
    if masked:
        allowed = np.ones((1, n, n), dtype=bool)
        allowed[0, query] = rng.random(n) < 0.7
        allowed[0, query, -1] = True
        allowed[0, query, key] = seed % 2 == 0
    layers = tuple(
        LayerAttention(
            kind="encoder",
            layer=number,
            query=whole(rng, N_HEAD, n, D_HEAD),
            key=whole(rng, n_kv, n, D_HEAD),
            value=whole(rng, n_kv, n, D_VALUE),
            scale=scale,
            softcap=softcap,
            bias=biases,
            allowed=allowed,
        )
        for number in range(2)
    )
    trace = Trace(
        tokens=hand_made.tokens(labels),
        layers={"encoder": layers},
        last_hidden_state=np.zeros((n, D_MODEL), dtype=np.float32),
        provenance=small_records.PROVENANCE,
    )
    selection = SimpleNamespace(place=Head(layer, 2), model="m", step=0)
    view = PartOfView(trace=trace, kind="encoder", theme="light", selection=selection)
    return Walk(view=view, query=query, key=key, anatomy=anatomy)  # type: ignore[arg-type]


def matrix(at: Any, key: str) -> dict[str, Any]:
    """What a picture of a matrix has: its numbers, the size in its title, row labels, framed rows and columns, hover text."""
    drawn_ = figure(at, f"step_{key}")
    [cells], layout = drawn_["data"], drawn_["layout"]
    rows, columns = [], []
    z = numbers(cells["z"])
    for shape in layout.get("shapes", []):
        x, y = (shape["x0"], shape["x1"]), (shape["y0"], shape["y1"])
        if x == (-0.5, z.shape[1] - 0.5):
            rows.append((y[0] + 0.5, y[1] - 0.5))
        else:
            assert y == (-0.5, z.shape[0] - 0.5)
            columns.append((x[0] + 0.5, x[1] - 0.5))
    assert cells["zmax"] == -cells["zmin"] == (np.abs(z).max() or 1)
    assert layout["yaxis"]["autorange"] == "reversed"
    title, size = re.fullmatch(r"<b>(.*)</b>  (.*)", layout["title"]["text"]).groups()
    labels = layout["yaxis"].get("ticktext")
    if labels is not None:
        assert layout["yaxis"]["tickvals"] == [*range(len(z))] and layout["yaxis"]["showticklabels"]
    names = [layout[axis]["title"]["text"] for axis in ("yaxis", "xaxis")]
    picture = {"z": z, "title": title, "size": size, "labels": labels, "rows": rows, "columns": columns}
    return picture | {"names": names, "hover": cells["hovertemplate"]}


def pictured(at: Any, key: str, cells: Any, **expected: Any) -> None:
    picture = matrix(at, key)
    np.testing.assert_allclose(picture["z"], cells, rtol=1e-5, atol=1e-6)
    assert picture["size"] == " × ".join(str(size) for size in np.shape(cells))
    assert alt(at, f"step_{key}").endswith(f", {len(cells)} by {len(cells[0])}")
    given = {"rows": [], "columns": [], "labels": None} | expected
    for name, wanted in given.items():
        assert picture[name] == wanted, name
    if "names" in expected:
        row, column = expected["names"]
        assert picture["hover"].startswith(f"{row or ''} %{{y}}, {column} %{{x}}: %{{z" if row else "")


def sides(at: Any) -> list[tuple[str, ...]]:
    """Numbers of what goes in and of what comes out."""
    [line] = [element.value for element in at.markdown if element.value.startswith("**In:**")]
    return [facts(side).numbers for side in line.split("**Out:**")]


def compared(at: Any) -> list[str]:
    """The lines that say that something equals the model's own numbers."""
    assert not [element.value for element in at.markdown if ":red[" in element.value]
    return [element.value for element in at.markdown if element.value.startswith(":material/calculate:")]


def written(formula: str) -> list[str]:
    r"""The numbers after \approx, as they are written."""
    rounded = formula.split(r"\approx", 1)[1]
    return re.findall(r"−?\d[\d.,]*\d|−?\d", rounded.replace("- ", ""))


def plain(markdown: str) -> str:
    """Without the targets of links and their tooltips."""
    return unescaped(re.sub(r'\]\(\S+(?: ".*?")?\)', "]", markdown))


def named(labels: list[str]) -> list[str]:
    return [f"{label}·{at}" for at, label in enumerate(labels)]


def head_of(walk: Walk) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    call = walk.view.trace.attention(walk.place.layer)
    of_keys = 2 * len(call.key) // N_HEAD
    return call.query[2], call.key[of_keys], call.value[of_keys], call


def score_on_paper(walk: Walk, query: int, key: int) -> tuple[float, float, float]:
    """Dot product, score before the mask, and bias."""
    queries, keys, _, call = head_of(walk)
    dot = math.fsum(float(a) * float(b) for a, b in zip(queries[query], keys[key], strict=True))
    scaled = call.scale * dot
    capped = scaled if call.softcap is None else call.softcap * math.tanh(scaled / call.softcap)
    bias = 0.0 if call.bias is None else float(call.bias[2, query, key])
    return dot, capped + bias, bias


def row_on_paper(walk: Walk) -> list[float]:
    call = walk.view.trace.attention(walk.place.layer)
    n = len(walk.view.trace.tokens)
    seen = [call.allowed is None or bool(call.allowed[0, walk.query, key]) for key in range(n)]
    return [
        score_on_paper(walk, walk.query, key)[1] if is_seen else -math.inf for key, is_seen in enumerate(seen)
    ]


def softmax(row: list[float]) -> list[float]:
    largest = max(row)
    counts = [math.exp(value - largest) for value in row]
    return [count / math.fsum(counts) for count in counts]


@pytest.mark.parametrize(
    "labels", [SHORT, ["cat", "door"], ["[CLS]", "cat"], ["[CLS]", "cat", "[CLS]"]], ids=len
)
def test_tokens(labels):
    walk = walk_of(0, labels=labels, query=0)
    at = drawn(lambda: vectors.tokens_step(walk))
    assert sides(at) == [(), (str(len(labels)),)]
    table = at.dataframe[0].value
    tokens = walk.view.trace.tokens
    assert table["position"].tolist() == [*range(len(labels))]
    assert table["token"].tolist() == labels
    assert table["id"].tolist() == tokens.ids.tolist()
    assert table["word"].tolist() == [
        "" if label[0] == "[" else str(tokens.word[place]) for place, label in enumerate(labels)
    ]
    added = list(dict.fromkeys(label for label in labels if label[0] == "["))
    [sentence] = [element.value for element in at.markdown if "vocabulary" in element.value]
    last = plain(sentence.rsplit("belongs to a token.", 1)[1])
    assert [name for name in ("[CLS]", "[SEP]") if name in last] == added
    assert ("are not part" in last) == (len(added) > 1) and ("is not part" in last) == (len(added) == 1)


def anatomy_of(seed: int, n: int, *, kind: str = "encoder", layer: int = 1, **changes: Any) -> LayerAnatomy:
    rng = np.random.default_rng(seed)
    hidden = whole(rng, n, D_MODEL)
    given = {
        "kind": kind,
        "layer": layer,
        "ingredients": {name: whole(rng, n, D_MODEL) for name in ("token", "segment", "position")},
        "norm": None,
        "leads_to_first_layer": None,
        "hidden": hidden,
        "sources": hidden,
        "projections": {},
        "output": None,
        "output_weight": None,
        "output_bias": None,
    }
    return LayerAnatomy(**given | changes)


@pytest.mark.parametrize("n_segment", [1, 2])
@pytest.mark.parametrize("has_hidden", [True, False])
def test_vectors(n_segment, has_hidden, monkeypatch):
    config = SimpleNamespace(type_vocab_size=n_segment)
    monkeypatch.setattr(
        vectors.cache, "model", lambda name: SimpleNamespace(network=SimpleNamespace(config=config))
    )
    changes = {} if has_hidden else {"hidden": None, "sources": None}
    anatomy = anatomy_of(1, 5, **changes)
    walk = walk_of(0, anatomy=anatomy)
    at = drawn(lambda: vectors.vectors_step(walk))
    assert sides(at) == [("5",), ("5", "6")]
    names = ["token", "constant" if n_segment == 1 else "segment", "position", "sum"]
    parts = [anatomy.ingredients[name][2] for name in ("token", "segment", "position")]
    parts.append(np.array([math.fsum(map(float, column)) for column in zip(*parts, strict=True)]))
    pictured(at, "ingredients", parts, rows=[(3, 3)], labels=names, names=["", "dimension"])
    assert matrix(at, "ingredients")["title"] == "token 2, part by part"
    lengths = [number_text(math.hypot(*map(float, part))) for part in parts]
    [caption] = [element.value for element in at.caption if element.value.startswith("Lengths")]
    assert facts(caption).quoted == ("door",) and facts(caption).numbers == tuple(lengths)
    assert [part in caption for part in names] == [True] * 4
    formula = at.latex[0].value
    assert re.findall(r"\\text\{(\w+)\}", formula) == names[:3]
    assert LINKS == ["Positions"]
    if has_hidden:
        pictured(at, "hidden", anatomy.hidden, rows=[(2, 2)], labels=named(SHORT), names=["", "dimension"])
    else:
        assert "step_hidden" not in [element.key for element in at.get("bidi_component")]
    assert ("sections 3.4 and 3.5" in at.caption[-1].value) and ("segments" in at.caption[-1].value) == (
        n_segment == 2
    )


def test_vectors_of_one_token_without_positions(monkeypatch):
    anatomy = anatomy_of(1, 1, hidden=None, ingredients={"token": np.ones((1, D_MODEL), dtype=np.float32)})
    walk = walk_of(0, labels=["cat"], anatomy=anatomy, query=0, key=0)
    at = drawn(lambda: vectors.vectors_step(walk))
    assert sides(at)[0] == ("1",)
    assert "ids" not in at.markdown[0].value
    pictured(at, "hidden", anatomy.sources, rows=[(0, 0)], labels=named(["cat"]), names=["", "dimension"])
    assert LINKS == [] and "section 3.4" in at.caption[-1].value and "3.5" not in at.caption[-1].value


@pytest.mark.parametrize("method", ["layer", "rms"])
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_sum_is_normalised(method, has_bias, monkeypatch):
    rng = np.random.default_rng(2)
    weight, bias = whole(rng, D_MODEL), whole(rng, D_MODEL) if has_bias else None
    parts = {"token": whole(rng, 5, D_MODEL), "position": whole(rng, 5, D_MODEL)}
    rows, spreads = [], []
    for token, position in zip(*parts.values(), strict=True):
        row = [float(a) + float(b) for a, b in zip(token, position, strict=True)]
        mean = math.fsum(row) / len(row) if method == "layer" else 0.0
        spread = math.sqrt(math.fsum((number - mean) ** 2 for number in row) / len(row) + 1e-5)
        rows.append([(number - mean) / spread * float(w) for number, w in zip(row, weight, strict=True)])
        if bias is not None:
            rows[-1] = [number + float(b) for number, b in zip(rows[-1], bias, strict=True)]
        spreads.append((mean, spread))
    norm = Normalisation(
        method=method, weight=weight, bias=bias, eps=1e-5, made=np.array(rows, dtype=np.float32)
    )
    walk = walk_of(0, anatomy=anatomy_of(1, 5, ingredients=parts, norm=norm))
    at = drawn(lambda: vectors.vectors_step(walk))
    [line] = compared(at)
    assert "5 tokens" in line and ("LayerNorm" if method == "layer" else "RMSNorm") in line
    formula = at.latex[1].value
    assert (r"\beta" in formula) == has_bias
    mean, spread = spreads[2]
    if method == "layer":
        assert number_text(mean) in formula and number_text(spread) in formula
    else:
        assert number_text(spread) in formula and f"{{{D_MODEL}}}" in formula


@pytest.mark.parametrize(
    ("layer", "leads", "is_compared"),
    [(0, "as it is", True), (0, "by a matrix", False), (1, "as it is", False)],
)
def test_a_sum_that_the_first_layer_reads_as_it_is(layer, leads, is_compared):
    parts = {"token": whole(np.random.default_rng(3), 5, D_MODEL)}
    anatomy = anatomy_of(
        1, 5, ingredients=parts, leads_to_first_layer=leads, hidden=parts["token"], sources=parts["token"]
    )
    at = drawn(lambda: vectors.vectors_step(walk_of(0, layer=layer, anatomy=anatomy)))
    lines = compared(at)
    assert len(lines) == is_compared
    assert not lines or facts(lines[0]).numbers[0] == "5"


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("n_kv", [4, 2])
def test_projections(has_bias, n_kv):
    """Queries, keys and values computed from what the layer reads; one computed by another matrix is reported."""
    walk = walk_of(4, n_kv=n_kv)
    trace = walk.view.trace
    rng = np.random.default_rng(5)
    hidden = whole(rng, 5, D_MODEL)
    maps, made = {}, {}
    for part, width in (("query", D_HEAD), ("key", D_HEAD), ("value", D_VALUE)):
        weight = whole(rng, N_HEAD, D_MODEL, width)
        bias = whole(rng, N_HEAD, width) if has_bias else None
        maps[part] = LinearMap(weight=weight, bias=bias)
        made[part] = hidden @ weight + (0 if bias is None else bias[:, None])
    call = trace.attention(1)
    step = N_HEAD // n_kv
    layers = list(trace.layers["encoder"])
    keys, values = call.key.copy(), call.value.copy()
    keys[2 // step], values[2 // step] = made["key"][2], made["value"][2]
    layers[1] = LayerAttention(
        kind="encoder", layer=1, query=made["query"], key=keys, value=values, scale=0.5
    )
    trace = Trace(
        tokens=trace.tokens,
        layers={"encoder": tuple(layers)},
        last_hidden_state=trace.last_hidden_state,
        provenance=trace.provenance,
    )
    walk.view.trace = trace
    walk = Walk(
        view=walk.view,
        query=2,
        key=1,
        anatomy=anatomy_of(1, 5, hidden=hidden, sources=hidden, projections=maps),
    )
    at = drawn(lambda: vectors.projections_step(walk))
    assert sides(at) == [("5", "6"), ("5", "4", "5", "4", "5", "3")]
    for part, letter, width, picked in (
        ("query", "Q", D_HEAD, 2),
        ("key", "K", D_HEAD, 1),
        ("value", "V", D_VALUE, 1),
    ):
        pictured(
            at, f"{part}_given", hidden, rows=[(picked, picked)], names=["token", "dimension"], title="M"
        )
        pictured(
            at,
            f"{part}_weight",
            maps[part].weight[2],
            names=["dimension", "dimension"],
            title=f"W<sub>{letter}</sub>",
        )
        pictured(
            at,
            f"{part}_made",
            made[part][2],
            rows=[(picked, picked)],
            names=["token", "dimension"],
            title=letter,
        )
        assert matrix(at, f"{part}_made")["z"].shape == (5, width)
    lines = compared(at)
    assert [line.split("Recomputed here: ")[1][0] for line in lines] == ["Q", "K", "V"]
    [in_line] = [facts(element.value) for element in at.markdown if "vectors of" in element.value]
    expected = ["4", "4", "4", "4", "16", "2", "8", "11"]
    assert [number for number in in_line.numbers if number.isdecimal()][: len(expected)] == expected
    [words] = [element.value for element in at.markdown if "vectors of" in element.value]
    assert ("keys and values too" in words) == (n_kv == 4) and ("2 heads share" in words) == (n_kv == 2)
    assert "same text here" in words


def test_projections_that_are_not_known():
    for changes in ({"projections": {}}, {"hidden": None}, {"sources": None}):
        maps = {"query": LinearMap(weight=np.ones((4, 6, 4), dtype=np.float32), bias=None)}
        anatomy = anatomy_of(1, 5, **{"projections": maps} | changes)
        at = drawn(lambda: vectors.projections_step(walk_of(0, anatomy=anatomy)))  # noqa: B023
        assert len(at.info) == 1 and not at.get("bidi_component")


FORMULAS = [
    {},
    {"scale": 0.25},
    {"softcap": 2.0},
    {"scale": 1.0, "softcap": 4.0, "bias": "content"},
    {"bias": "distance"},
    {"masked": True},
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("formula", FORMULAS, ids=str)
def test_one_score(seed, formula):
    walk = walk_of(seed, **formula)
    queries, keys, _, call = head_of(walk)
    at = drawn(lambda: scores.score_step(walk))
    dot, score, bias = score_on_paper(walk, 2, 1)
    is_masked = row_on_paper(walk)[1] == -math.inf
    assert sides(at) == [("4",), () if is_masked else (number_text(score),)]
    products = [float(a) * float(b) for a, b in zip(queries[2], keys[1], strict=True)]
    pictured(
        at,
        "pair",
        [queries[2], keys[1], products],
        rows=[(2, 2)],
        labels=["q 2", "k 1", "product"],
        names=["", "dimension"],
    )
    table = at.dataframe[0].value
    assert table["dimension"].tolist() == [0, 1, 2, 3]
    assert table["query"].tolist() == queries[2].tolist() and table["key"].tolist() == keys[1].tolist()
    assert table["product"].tolist() == products
    assert table["sum so far"].tolist() == pytest.approx([math.fsum(products[: n + 1]) for n in range(4)])
    latex = at.latex[0].value
    assert latex.strip("$\n ").startswith("s_{2,1}")
    expected = [number_text(call.scale), number_text(dot)]
    if call.softcap is not None:
        expected = [f"{call.softcap:g}", *expected, f"{call.softcap:g}"]
    if call.bias is not None:
        expected.append(number_text(abs(bias)))
        sign = "+" if bias >= 0 else "-"
        assert f" {sign} {number_text(abs(bias))}" in latex and "b_{2,1}" in latex
    assert written(latex) == [*expected, number_text(score)]
    assert (r"\sqrt{4}" in latex) == (call.scale == 0.5)
    [sentence] = [element.value for element in at.markdown if "How well does" in element.value]
    assert (r"\sqrt{4}" in sentence) == (call.scale == 0.5)
    assert (f"{call.scale:.4g} instead" in sentence) == (call.scale != 0.5)
    assert ("softcap" in sentence) == (call.softcap is not None)
    assert facts(sentence).quoted[:2] == ("cat", "door")
    by_distance = formula.get("bias") == "distance"
    assert ("a bias $b$" in sentence) == bool(call.bias is not None)
    if call.bias is not None:
        assert ("bias $b$, learned for" in sentence) == by_distance
        assert ("bias $b$, made from" in sentence) != by_distance
    strongest = sorted(range(4), key=lambda dimension: -abs(products[dimension]))[:3]
    captions = [element.value for element in at.caption]
    assert facts(captions[0]).numbers == tuple(
        part for dimension in strongest for part in (str(dimension), number_text(products[dimension]))
    )
    if is_masked:
        assert "minus infinity" in captions[1] and not compared(at)
    else:
        assert number_text(score) in compared(at)[0]
        if call.bias is not None:
            assert facts(captions[1]).numbers == (
                number_text(score - bias),
                number_text(bias),
                number_text(score),
            )
            assert ("whatever the tokens are" in captions[1]) == by_distance
    assert ("softcap" in captions[-1]) == (call.softcap is not None)
    assert ("1910.10683" in captions[-1]) == by_distance
    assert ("2006.03654" in captions[-1]) == (formula.get("bias") == "content")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("formula", FORMULAS, ids=str)
def test_a_row_of_scores(seed, formula):
    walk = walk_of(seed, **formula)
    queries, keys, _, call = head_of(walk)
    at = drawn(lambda: scores.row_step(walk))
    assert sides(at) == [("5", "4", "5", "4"), ("5", "5")]
    pictured(at, "row_query", queries, rows=[(2, 2)], names=["query", "dimension"], title="Q")
    pictured(at, "row_key", keys.T, columns=[(1, 1)], names=["dimension", "key"], title="Kᵀ")
    allowed = np.ones((5, 5), dtype=bool) if call.allowed is None else call.allowed[0]
    every = [
        [score_on_paper(walk, query, key)[1] if allowed[query, key] else 0.0 for key in range(5)]
        for query in range(5)
    ]
    pictured(
        at,
        "scores",
        every,
        rows=[(2, 2)],
        columns=[(1, 1)],
        labels=named(SHORT),
        names=["", "key"],
        title="S",
    )
    row = row_on_paper(walk)
    n_seen = sum(value > -math.inf for value in row)
    [line] = compared(at)
    assert f"this row of {n_seen} scores" in line
    [in_line] = [facts(element.value) for element in at.markdown if "The same for every key" in element.value]
    assert in_line.numbers == ("5", "5", "5") and in_line.quoted == ("door",)
    assert ("left empty" in at.caption[0].value) == (n_seen < 5)
    latex = at.latex[0].value
    assert (r"\sqrt{d_k}" in latex) == (call.scale == 0.5)
    assert (f"{call.scale:.4g}" in latex) == (call.scale != 0.5)
    assert ("+ B" in latex) == (call.bias is not None) and ("tanh" in latex) == (call.softcap is not None)


@pytest.mark.parametrize("labels", [SHORT, LONG], ids=len)
@pytest.mark.parametrize("formula", [{}, {"masked": True}, {"bias": "content"}], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_a_row_of_weights(seed, formula, labels):
    walk = walk_of(seed, labels=labels, **formula)
    n = len(labels)
    at = drawn(lambda: scores.softmax_step(walk))
    assert sides(at)[0] == (str(n), str(n)) and sides(at)[1][:2] == (str(n), str(n))
    row = row_on_paper(walk)
    weights, largest = softmax(row), max(row)
    drawn_ = matrix(at, "weights")
    np.testing.assert_allclose(drawn_["z"][2], weights, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(drawn_["z"].sum(axis=1), 1, rtol=1e-5)
    assert (drawn_["rows"], drawn_["columns"], drawn_["labels"]) == ([(2, 2)], [(1, 1)], named(labels))
    order = sorted(range(n), key=lambda key: -weights[key])[:12]
    listed = sorted(order if 1 in order else [*order[:-1], 1])
    table = at.dataframe[0].value
    assert table["key"].tolist() == [named(labels)[key] for key in listed]
    for column, expected in (
        ("score", row),
        ("less the largest", [value - largest for value in row]),
        ("exponential", [math.exp(value - largest) for value in row]),
        ("weight", weights),
    ):
        assert table[column].tolist() == pytest.approx([expected[key] for key in listed], rel=1e-5, abs=1e-9)
    latex = at.latex[0].value
    total = math.fsum(math.exp(value - largest) for value in row)
    assert latex.split(r"\approx")[2].split(",")[0].strip() == number_text(weights[1])
    assert f"{{{number_text(math.exp(row[1] - largest))}}}{{{number_text(total)}}}" in latex
    assert latex.strip("$\n ").endswith(number_text(largest))
    notes = [element.value for element in at.caption if "not listed" in element.value]
    assert len(notes) == (n > 12)
    if notes:
        others = [weights[key] for key in range(n) if key not in listed]
        assert str(n - 12) in facts(notes[0]).numbers
        assert f"{share_text(math.fsum(others))} of the weight" in notes[0]
    assert len(compared(at)) == 1


@pytest.mark.parametrize("labels", [SHORT, LONG], ids=len)
@pytest.mark.parametrize("seed", range(2))
def test_the_mean_of_the_values(seed, labels):
    walk = walk_of(seed, labels=labels)
    _, _, values, _ = head_of(walk)
    n, weights = len(labels), softmax(row_on_paper(walk))
    at = drawn(lambda: outputs.mean_step(walk))
    assert sides(at) == [(str(n), str(n), str(n), "3"), ("2", str(n), "3")]
    order = sorted(range(n), key=lambda key: -weights[key])[:12]
    listed = sorted(order if 1 in order else [*order[:-1], 1])
    parts = [[weights[key] * float(value) for value in values[key]] for key in range(n)]
    whole_ = [math.fsum(part[at_] for part in parts) for at_ in range(3)]
    rest = [math.fsum(parts[key][at_] for key in range(n) if key not in listed) for at_ in range(3)]
    shown = [*(parts[key] for key in listed), *([rest] if n > 12 else []), whole_]
    pictured(
        at,
        "mean",
        shown,
        rows=[(len(shown) - 1, len(shown) - 1)],
        labels=[*(named(labels)[key] for key in listed), *([f"{n - 12} others"] if n > 12 else []), "output"],
        names=["", "dimension"],
    )
    table = at.dataframe[0].value
    assert table["key"].tolist() == [named(labels)[key] for key in listed]
    lengths = [math.hypot(*map(float, values[key])) for key in listed]
    assert table["weight"].tolist() == pytest.approx([weights[key] for key in listed], rel=1e-5)
    assert table["length of its value ‖v‖"].tolist() == pytest.approx(lengths)
    assert "the mean, 3 numbers" in compared(at)[0]
    assert len([element for element in at.caption if "not listed" in element.value]) == (n > 12)
    assert r"o_{2} = \sum_j w_{2,j}" in at.latex[0].value


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_all_heads(seed, has_bias):
    rng = np.random.default_rng(seed)
    weight, bias = whole(rng, N_HEAD, D_VALUE, D_MODEL), whole(rng, D_MODEL) if has_bias else None
    walk = walk_of(seed)
    head_outputs = walk.view.trace.outputs(1).astype(
        float
    )  # [head, query, d_value], which the step before it shows
    of_heads = [
        [
            [
                math.fsum(head_outputs[head, query, v] * float(weight[head, v, d]) for v in range(D_VALUE))
                for d in range(D_MODEL)
            ]
            for head in range(N_HEAD)
        ]
        for query in range(5)
    ]
    whole_ = [
        [
            math.fsum(part[d] for part in parts) + (0.0 if bias is None else float(bias[d]))
            for d in range(D_MODEL)
        ]
        for parts in of_heads
    ]
    made = np.array(whole_, dtype=np.float32)
    anatomy = anatomy_of(1, 5, output=made, output_weight=weight, output_bias=bias)
    walk = Walk(view=walk.view, query=2, key=1, anatomy=anatomy)
    at = drawn(lambda: outputs.heads_step(walk))
    assert sides(at) == [("4", "5", "3"), ("5", "6")]
    beside = [
        [float(head_outputs[head, query, v]) for head in range(4) for v in range(3)] for query in range(5)
    ]
    pictured(
        at,
        "side_by_side",
        beside,
        rows=[(2, 2)],
        columns=[(6, 8)],
        names=["token", "dimension"],
    )
    stacked = [weight[head, v].tolist() for head in range(4) for v in range(3)]
    pictured(at, "output_weight", stacked, rows=[(6, 8)], names=["dimension", "dimension"])
    pictured(at, "layer_output", made, rows=[(2, 2)], names=["token", "dimension"])
    pictured(
        at,
        "heads",
        [*of_heads[2], whole_[2]],
        rows=[(2, 2)],
        labels=["head 0", "head 1", "head 2", "head 3", "output"],
        names=["", "dimension"],
    )
    lengths = [math.hypot(*part) for part in of_heads[2]]
    in_caption = facts(at.caption[0].value)
    longest = lengths.index(max(lengths))
    rank = 1 + sum(length > lengths[2] + 1e-9 for length in lengths)
    assert in_caption.numbers == (
        str(longest),
        number_text(max(lengths)),
        "2",
        number_text(lengths[2]),
        str(rank),
        "4",
    )
    assert len(compared(at)) == 2 and "all 5 rows" in compared(at)[0]
    [words] = [
        facts(element.value)
        for element in at.markdown
        if "side by side" in element.value and "mixes" in element.value
    ]
    assert words.numbers[:5] == ("4", "4", "3", "12", "6") and words.quoted == ("door",)


def test_heads_whose_sum_is_not_known():
    at = drawn(lambda: outputs.heads_step(walk_of(0, anatomy=anatomy_of(1, 5))))
    assert len(at.info) == 1 and not at.get("bidi_component")


@pytest.mark.parametrize("labels", [SHORT, LONG], ids=len)
@pytest.mark.parametrize("has_hidden", [True, False])
def test_the_rows_of_the_film(labels, has_hidden):
    n = len(labels)
    anatomy = anatomy_of(1, n) if has_hidden else None
    walk = walk_of(3, labels=labels, anatomy=anatomy)
    queries, keys, _values, _ = head_of(walk)
    at = drawn(lambda: film.film(walk))
    data = component(at, "head_film")
    row = row_on_paper(walk)
    weights, largest = softmax(row), max(row)
    order = sorted(range(n), key=lambda key: -weights[key])[:12]
    listed = sorted(order if 1 in order else [*order[:-1], 1])
    rows = data["rows"]
    assert [row["label"] for row in rows] == [
        *(named(labels)[key] for key in listed),
        *([f"{n - 12} others"] if n > 12 else []),
    ]
    for film_row, key in zip(rows, listed, strict=False):
        assert film_row["special"] == (labels[key][0] == "[") and film_row["picked"] == (key == 1)
        dot = math.fsum(float(a) * float(b) for a, b in zip(queries[2], keys[key], strict=True))
        assert film_row["product"]["text"] == number_text(dot) and film_row["score"]["text"] == number_text(
            row[key]
        )
        assert film_row["weight"]["text"] == number_text(weights[key])
        assert film_row["exponential"]["text"] == number_text(math.exp(row[key] - largest))
        assert (film_row["x"] is None) == (not has_hidden)
    total = math.fsum(math.exp(score - largest) for score in row)
    if n > 12:
        rest = [key for key in range(n) if key not in listed]
        assert rows[-1]["weight"]["text"] == number_text(math.fsum(weights[key] for key in rest))
        assert rows[-1]["exponential"]["text"] == number_text(
            math.fsum(math.exp(row[key] - largest) for key in rest)
        )
        assert rows[-1]["special"] and rows[-1]["product"] is None
    assert data["exponentials"] == number_text(total) and data["total"] == "1.00"
    assert data["query"]["label"] == "door·2" if n == 5 else data["query"]["label"] == "w1·2"
    assert (data["query"]["x"] is None) == (not has_hidden)
    assert "layer 1, head 2" in data["name"]


def test_what_the_layer_reads_of_either_text():
    walk = walk_of(0)
    first, second = (whole(np.random.default_rng(seed), 5, D_MODEL) for seed in (1, 2))

    def of(kind: str, hidden: Any, sources: Any) -> tuple[Any, Any]:
        walk.view.kind = kind
        anatomy = anatomy_of(1, 5, hidden=hidden, sources=sources)
        return film._vectors(Walk(view=walk.view, query=2, key=1, anatomy=anatomy))

    assert film._vectors(walk) == (None, None)
    assert [any(a is b for b in (first, second)) for a in of("cross", first, second)] == [True, True]
    np.testing.assert_array_equal(of("cross", first, second)[1], second)
    assert of("cross", None, second)[0] is None
    for given in (*of("encoder", first, None), *of("encoder", None, first)):
        np.testing.assert_array_equal(given, first)


TARGETS = ["le", "chat", "porte"]


def two_texts(anatomy: Any = None) -> Walk:
    """The last of three queries of the decoder, and the second of five keys of the encoder."""
    rng = np.random.default_rng(8)
    layers = tuple(
        LayerAttention(
            kind="cross",
            layer=layer,
            query=whole(rng, N_HEAD, 3, D_HEAD),
            key=whole(rng, N_HEAD, 5, D_HEAD),
            value=whole(rng, N_HEAD, 5, D_VALUE),
            scale=0.5,
        )
        for layer in range(2)
    )
    trace = Trace(
        tokens=hand_made.tokens(SHORT),
        target_tokens=hand_made.tokens(TARGETS),
        layers={"cross": layers},
        last_hidden_state=np.zeros((3, D_MODEL), dtype=np.float32),
        provenance=small_records.PROVENANCE,
    )
    selection = SimpleNamespace(place=PLACE, model="m", step=0)
    view = PartOfView(trace=trace, kind="cross", theme="light", selection=selection)
    return Walk(view=view, query=2, key=1, anatomy=anatomy)  # type: ignore[arg-type]


def test_queries_and_keys_of_two_texts():
    walk = two_texts()
    at = drawn(lambda: vectors.tokens_step(walk))
    assert at.dataframe[0].value["token"].tolist() == TARGETS
    at = drawn(lambda: scores.score_step(walk))
    [sentence] = [element.value for element in at.markdown if "How well does" in element.value]
    assert facts(sentence).quoted[:2] == ("cat", "porte")
    at = drawn(lambda: scores.row_step(walk))
    assert sides(at) == [("3", "4", "5", "4"), ("3", "5")]
    assert matrix(at, "scores")["labels"] == named(TARGETS)
    [in_line] = [facts(element.value) for element in at.markdown if "The same for every key" in element.value]
    assert in_line.numbers == ("5", "3", "5") and in_line.quoted == ("porte",)
    assert {*facts(at.caption[0].value).quoted} <= {*SHORT}
    assert alt(at, "step_scores") == "Matrix S, 3 by 5"
    at = drawn(lambda: scores.softmax_step(walk))
    assert matrix(at, "weights")["labels"] == named(TARGETS)
    assert at.dataframe[0].value["key"].tolist() == named(SHORT)
    at = drawn(lambda: outputs.mean_step(walk))
    assert sides(at) == [("3", "5", "5", "3"), ("2", "3", "3")]
    assert matrix(at, "mean")["labels"] == [*named(SHORT), "output"]
    [in_line] = [facts(element.value) for element in at.markdown if "is the mean of all" in element.value]
    assert in_line.quoted == ("porte",)


def test_what_is_made_of_two_texts(monkeypatch):
    config = SimpleNamespace(type_vocab_size=2)
    monkeypatch.setattr(
        vectors.cache, "model", lambda name: SimpleNamespace(network=SimpleNamespace(config=config))
    )
    rng = np.random.default_rng(9)
    hidden, sources_ = whole(rng, 3, D_MODEL), whole(rng, 5, D_MODEL)
    maps = {
        part: LinearMap(weight=whole(rng, N_HEAD, D_MODEL, width), bias=None)
        for part, width in (("query", D_HEAD), ("key", D_HEAD), ("value", D_VALUE))
    }
    anatomy = anatomy_of(1, 3, kind="cross", hidden=hidden, sources=sources_, projections=maps)
    walk = two_texts(anatomy)
    at = drawn(lambda: vectors.projections_step(walk))
    assert sides(at) == [("3", "6", "5", "6"), ("3", "4", "5", "4", "5", "3")]
    titles = [matrix(at, f"{part}_given")["title"] for part in ("query", "key", "value")]
    assert titles == ["M", "the encoder's output", "the encoder's output"]
    pictured(at, "query_given", hidden, rows=[(2, 2)])
    pictured(at, "key_given", sources_, rows=[(1, 1)])
    [sentence] = [element.value for element in at.markdown if "vectors of" in element.value]
    assert "from the encoder's" in sentence and "same text here" not in sentence
    assert (
        len([element for element in at.markdown if ":red[" in element.value]) == 3
    )  # of other numbers than the trace's
    at = drawn(lambda: vectors.vectors_step(walk))
    assert sides(at) == [("3",), ("3", "6")] and matrix(at, "hidden")["labels"] == named(TARGETS)
    blind = anatomy_of(1, 3, kind="cross", hidden=None, sources=sources_)
    at = drawn(lambda: vectors.vectors_step(two_texts(blind)))
    assert "step_hidden" not in [element.key for element in at.get("bidi_component")]


def test_a_term_is_linked_where_it_is_first_met():
    walk = walk_of(0)
    terms = []
    drawn(
        lambda: terms.extend(
            [walk.term("Query"), walk.term("Query"), walk.term("Query", "asked"), walk.term("W_O", "$W_O$")]
        )
    )
    first, again, shown, other = terms
    assert (
        first.startswith("[query](")
        and again == "query"
        and shown == "asked"
        and other.startswith("[$W_O$](")
    )


@pytest.mark.parametrize("factor", [1.0, 1.00005, 1.0002])
def test_what_is_worked_out_here_is_compared_with_what_stands_there(factor):
    there = np.array([1.0, -4.0, 2.0], dtype=np.float32)
    at = drawn(
        lambda: compare(there.astype(float) * factor, there, "some numbers", to="the others", how="Read")
    )
    [line] = [element.value for element in at.markdown]
    difference = power_text(float(abs(4.0 * factor - 4.0)))
    if factor < 1.0001:
        assert (
            line
            == f":material/calculate: Read: some numbers. Largest difference from the others: {difference}."
        )
    else:
        assert (
            line
            == f":red[:material/cancel: Does not match the others:] some numbers. Largest difference: {difference}."
        )


@pytest.mark.parametrize("are_strongest", [True, False])
def test_keys_that_are_not_listed(are_strongest):
    listed = Listed(
        positions=tuple(range(12)), n_others=1300, others_weight=0.125, are_strongest=are_strongest
    )
    which = "The 12 strongest keys" if are_strongest else "The 11 strongest keys and the selected one"
    assert listed_note(listed) == f"{which}; what is not listed, 1,300 keys, has 12.5% of the weight."
    assert listed_note(Listed(positions=(0,), n_others=0, others_weight=0.0, are_strongest=True)) == ""


@pytest.mark.parametrize("part", ["bias", "no bias", "no matrix", "no vector", "nothing"])
def test_how_the_film_says_that_a_query_is_made(part):
    bias = None if part == "no bias" else np.zeros((4, 4), dtype=np.float32)
    linear = LinearMap(weight=np.ones((4, 6, 4), dtype=np.float32), bias=bias)
    maps = {"query": linear} if "bias" in part else {}
    changes = {"hidden": None, "sources": None} if part == "no vector" else {}
    anatomy = None if part == "nothing" else anatomy_of(1, 5, projections=maps, **changes)
    at = drawn(lambda: film.film(walk_of(3, anatomy=anatomy)))
    words = component(at, "head_film")["stages"][1]["caption"]
    begin = {"bias": "q = x W_Q + b_Q,", "no bias": "q = x W_Q,"}.get(
        part, "The query q of “door”, as the attention gets it,"
    )
    assert words.startswith(begin) and " 4 numbers." in words
    assert ("does more than multiply" in words) == (part == "no matrix")


@pytest.mark.parametrize(
    ("formula", "score", "words"),
    [
        ({}, "q · k / √4", "Divided by √4 = 2.00"),
        ({"scale": 1.0}, "q · k", "Multiplied by this model's scale, 1"),
        ({"scale": 0.25}, "q · k × 0.25", "Multiplied by this model's scale, 0.25"),
        ({"softcap": 2.0}, "2 tanh(q · k / √4 / 2)", "softcapped to 2 at most"),
        ({"bias": "distance"}, "q · k / √4 + bias", "with the bias for their distance,"),
        ({"bias": "content"}, "q · k / √4 + bias", "with the bias for their distance and contents,"),
    ],
)
def test_how_the_film_says_that_a_product_is_scaled(formula, score, words):
    at = drawn(lambda: film.film(walk_of(3, **formula)))
    data = component(at, "head_film")
    assert data["score"] == score and words in data["stages"][3]["caption"]
    assert (
        "5 products" in data["stages"][2]["caption"] and "5 weighted values" in data["stages"][6]["caption"]
    )


def test_the_film_of_one_long_token():
    walk = walk_of(3, labels=["x" * 41], query=0, key=0)
    at = drawn(lambda: film.film(walk))
    stages = component(at, "head_film")["stages"]
    assert "gives 1 product." in stages[2]["caption"] and "1 weighted value " in stages[6]["caption"]
    assert len(facts(stages[2]["caption"]).quoted[0]) == 40


@pytest.mark.parametrize(
    ("width", "n_model", "words"),
    [
        (64, 64, None),  # a cell for each number
        (65, 64, "2 numbers of q and k, of 2 numbers of v."),
        (64, 768, "12 numbers of x."),
    ],
)
def test_what_a_cell_of_the_film_shows_of_long_vectors(width, n_model, words):
    path = SimpleNamespace(query=np.zeros(width), output=np.zeros(width), weights=np.ones(3) / 3)
    note = film._note(path, np.zeros((3, n_model)), np.arange(3), 1.5)
    assert ("Each cell shows" in note) == (words is not None)
    assert words is None or note.endswith(f"Each cell shows the number furthest from 0 of {words}")


@pytest.mark.parametrize("known", ["output", "output_weight"])
def test_a_layer_whose_output_is_not_that_of_its_matrix_is_not_shown(known):
    shapes = {"output": (5, D_MODEL), "output_weight": (4, D_VALUE, D_MODEL)}
    anatomy = anatomy_of(1, 5, **{known: np.ones(shapes[known], dtype=np.float32)})
    at = drawn(lambda: outputs.heads_step(walk_of(0, anatomy=anatomy)))
    [notice] = at.info
    assert "so the layer's output is not shown" in notice.value and not at.get("bidi_component")


def test_a_token_is_named_as_it_stands_in_its_text():
    trace = SimpleNamespace(
        query_tokens=lambda kind: hand_made.tokens(["le", "*chat*"]),
        key_tokens=lambda kind: hand_made.tokens(["the", "cat"]),
    )
    walk = Walk(view=PartOfView(trace=trace, kind="cross"), query=0, key=1, anatomy=None)
    assert [unescaped(walk.label(1, of=of)) for of in ("query", "key")] == ["“*chat*”", "“cat”"]
