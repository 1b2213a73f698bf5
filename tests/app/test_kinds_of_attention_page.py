"""Kinds of attention: the masked matrix is a softmax over what is left, and the output is a real forward pass's."""

import re

import numpy as np
import pytest
import torch
import transformers as tf

import attnviz
from attnviz.model.interventions import MaskedKeys
from tests import numpy_attention, tiny
from tests.app.screen import (
    DOOR,
    Facts,
    assert_no_exception,
    facts,
    figure,
    notices,
    numbers,
    open_page,
    unescaped,
)
from tests.app.views import trace_of, view_of
from ui.choice.fields import Cell
from ui.rooms.how_it_works.kinds_of_attention.mask import mask_title
from ui.rooms.how_it_works.kinds_of_attention.output import UNCHANGED
from ui.runtime import cache

PAGE = "pages/kinds_of_attention.py"
CAUSAL = np.tril(np.ones((11, 11), dtype=bool))
NEAR = np.abs(np.subtract.outer(np.arange(11), np.arange(11))) <= 1


def is_unchanged(at) -> bool:
    """Whether the page says that the mask changes nothing."""
    return UNCHANGED in [unescaped(line.value) for line in at.markdown]


def read_alone(at) -> list[str]:
    """The lines that say how far a sentence under the mask is from the same sentence alone."""
    return [line.value for line in at.markdown if re.match(r":material/calculate:|:red\[", line.value)]


def cells(at, chart: str) -> np.ndarray:
    return numbers(figure(at, chart)["data"][0]["z"]).astype(np.float64)


@pytest.mark.parametrize(
    ("params", "allowed"), [({"mask": "causal"}, CAUSAL), ({"mask": "window", "reach": 1}, NEAR)]
)
def test_the_same_vectors_under_another_mask(params, allowed, door_trace):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, **params)
    assert_no_exception(at)
    np.testing.assert_array_equal(np.isnan(cells(at, "mask_after")), ~allowed)
    expected = numpy_attention.weights(
        door_trace.query(3, 1), door_trace.key(3, 1), 32**-0.5, allowed=allowed
    )
    np.testing.assert_allclose(np.nan_to_num(cells(at, "mask_after")), expected, atol=1e-6)
    np.testing.assert_allclose(cells(at, "mask_before"), door_trace.weights(3, 1), atol=1e-7)
    tones = [figure(at, chart)["data"][0]["zmax"] for chart in ("mask_before", "mask_after")]
    assert tones[0] == tones[1] == pytest.approx(max(expected.max(), door_trace.weights(3, 1).max()))


@pytest.mark.parametrize(
    ("where", "place"),
    [("all layers", {}), ("this layer", {"layer": 3}), ("this head", {"layer": 3, "head": 1})],
)
def test_what_it_does_is_another_forward_pass(where, place, embedded, door_trace):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, mask="causal", applied_in=where)
    after = embedded.trace(DOOR, interventions=[MaskedKeys(allowed=CAUSAL, **place)]).last_hidden_state
    before = door_trace.last_hidden_state
    cosine = [
        float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(before, after, strict=True)
    ]
    distances = numbers(figure(at, "mask_effect")["data"][0]["y"])
    np.testing.assert_allclose(distances, 1 - np.array(cosine), atol=1e-5)


def test_a_mask_that_forbids_nothing_says_so(checkpoint, monkeypatch):
    at = open_page(PAGE, text=DOOR, mask="none")
    assert is_unchanged(at)
    assert numbers(figure(at, "mask_effect")["data"][0]["y"]).max() < 1e-9  # float64: 1 less a cosine
    at = open_page(PAGE, text=DOOR, mask="none", painted="7.5")
    assert not is_unchanged(at)
    folder = checkpoint("gpt2")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    at = open_page(PAGE, model=folder.name, text="the cat", mask="causal")  # it has that mask already
    assert_no_exception(at)
    assert is_unchanged(at)


def test_a_masked_cell_without_weight_is_not_called_unmasked(door_trace, monkeypatch):
    """Whatever the forward pass makes of it."""
    monkeypatch.setattr(cache, "masked_trace", lambda *_: door_trace)
    at = open_page(PAGE, text=DOOR, mask="none", painted="7.5")
    assert not is_unchanged(at)
    assert any(facts(unescaped(line.value)).numbers == ("1",) for line in at.markdown)  # cell


def test_painted_cells_and_hidden_keys_are_in_the_link():
    at = open_page(PAGE, text=DOOR, layer=3, head=1, mask="none", hidden_keys="0", painted="7.5,8.5")
    hidden = np.isnan(cells(at, "mask_after"))
    assert hidden[:, 0].all()
    assert hidden[7, 5] and hidden[8, 5] and hidden.sum() == 13
    at.button(key="unpaint").click().run()
    assert np.isnan(cells(at, "mask_after")).sum() == 11


def test_a_wrong_link_is_explained():
    at = open_page(PAGE, text=DOOR, mask="round", painted="x", reach=9999)
    assert_no_exception(at)
    remarks = " ".join(notices(at))
    assert facts(remarks).quoted == ("round", "x")
    assert "512" in facts(remarks).numbers  # the nearest allowed number


def test_tile_by_tile_ends_at_the_direct_result(door_trace):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, tile=4, tiles=3)
    table = at.dataframe[0].value
    scores = door_trace.scores(3, 1)[7].astype(np.float64)
    assert len(table) == 3
    np.testing.assert_allclose(
        table["largest score in the tile"], [scores[:4].max(), scores[4:8].max(), scores[8:].max()], rtol=1e-6
    )
    highest = np.maximum.accumulate(table["largest score in the tile"])
    np.testing.assert_allclose(table["m′, maximum so far"], highest, rtol=1e-6)
    times, sums = table["e^(m − m′)"].tolist(), table["ℓ′, sum so far"].tolist()
    assert times[0] == 0
    for number, tile in enumerate((scores[:4], scores[4:8], scores[8:])):  # the formula, tile by tile
        before = sums[number - 1] * times[number] if number else 0
        assert sums[number] == pytest.approx(before + np.exp(tile - highest[number]).sum(), rel=1e-5)
    assert times[1:] == pytest.approx(np.exp(highest[:-1].to_numpy() - highest[1:].to_numpy()))
    np.testing.assert_allclose(
        table["ℓ′, sum so far"].iloc[-1], np.exp(scores - scores.max()).sum(), rtol=1e-5
    )
    assert table.iloc[:, -1].iloc[0] > 0.01 > 1e-5 > table.iloc[:, -1].iloc[-1]


def test_only_a_pair_has_sentences_to_keep_apart():
    alone = open_page(PAGE, text=DOOR, mask="sentences")
    assert_no_exception(alone)
    assert not np.isnan(cells(alone, "mask_after")).any()
    pair = open_page(PAGE, text="The door was old.", second="It creaked.", mask="sentences")
    hidden = np.isnan(cells(pair, "mask_after"))
    assert hidden[1, -1] and not hidden[1, 1]


def test_no_message_crosses_between_two_sentences():
    pair = {"text": "The door was old.", "second": "It creaked in the wind."}
    at = open_page(PAGE, **pair, mask="sentences", applied_in="all layers")
    [compared] = read_alone(at)
    assert compared.startswith(":material/calculate:")
    assert facts(compared).numbers[0] == "7"  # tokens of the first sentence
    for other in ({"applied_in": "this layer"}, {"mask": "causal"}, {"painted": "1.9"}):
        at = open_page(PAGE, **{**pair, "mask": "sentences", "applied_in": "all layers", **other})
        assert not read_alone(at)


def test_a_message_that_crosses_is_seen(monkeypatch):
    """The same check where the mask lets one token through."""
    from attnviz.effects import masks

    right = masks.segment_mask

    def leaking(queries, keys):
        allowed = right(queries, keys)
        allowed[2, -2] = True
        return allowed

    monkeypatch.setattr(masks, "segment_mask", leaking)
    at = open_page(PAGE, text="The door was red.", second="It creaked in rain.", mask="sentences")
    [compared] = read_alone(at)
    assert compared.startswith(":red[")


def test_the_width_of_a_window_stands_beside_it():
    at = open_page(PAGE, text=DOOR, mask="window", reach=1)
    assert at.number_input(key="field_reach").value == 1
    at.number_input(key="field_reach").set_value(3).run()
    assert_no_exception(at)
    distance = np.abs(np.subtract.outer(np.arange(11), np.arange(11)))
    np.testing.assert_array_equal(np.isnan(cells(at, "mask_after")), distance > 3)
    other = open_page(PAGE, text=DOOR, mask="causal")
    assert "field_reach" not in [element.key for element in other.number_input]


def boxes(at, kind: str) -> list[str]:
    return figure(at, f"sources_{kind}")["data"][0]["text"]


def test_sources_are_drawn_with_the_sizes_of_the_text():
    at = open_page(PAGE, text=DOOR)
    assert [box for box in boxes(at, "encoder") if "×" in box and "output" in box] == [
        "weights × V<br>output, 11 × 32"
    ]
    assert boxes(at, "encoder")[:2] == ["text<br>11 × 384", "W_Q<br>384 × 32"]
    for other in ("decoder", "cross"):
        assert not any(character.isdigit() for box in boxes(at, other) for character in box)
    titles = [line.value for line in at.markdown if re.fullmatch(r"\*\*.*\*\*( · .*)?", line.value)]
    assert len([title for title in titles if " · " in title]) == 2  # those that are not in this model


def test_a_model_without_a_language_head_says_so():
    at = open_page(PAGE, text=DOOR)
    [notice] = [
        line for line in map(unescaped, (part.value for part in at.markdown)) if "masked-language" in line
    ]
    assert notice.startswith("all-MiniLM-L6-v2 ")
    assert len(at.dataframe) == 1


@pytest.mark.parametrize(
    ("params", "position"),
    [({"masked": "2", "query": 4}, 2), ({"query": 4}, 4), ({"masked": "2,3", "query": 3}, 3)],
)
def test_what_the_model_would_fill_in(params, position, tmp_path, monkeypatch):
    text, folder = "the door when it opened", tmp_path / "headed"
    monkeypatch.setenv("ATTNVIZ_MODELS", str(tiny.save_with_head("bert", folder)))
    at = open_page(PAGE, model="headed", text=text, layer=1, head=1, mask="causal", **params)
    assert_no_exception(at)
    ids = attnviz.load_model(str(folder)).tokenize(text).ids.copy()
    masked = [int(part) for part in params.get("masked", "").split(",") if part]
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    ids[masked] = tokenizer.mask_token_id
    for number, is_decoder in enumerate((False, True)):  # transformers' own, without and with the causal mask
        config = tf.BertConfig.from_pretrained(folder, is_decoder=is_decoder)
        theirs = tf.BertForMaskedLM.from_pretrained(folder, config=config, attn_implementation="eager")
        with torch.inference_mode():
            shares = theirs(torch.tensor(ids)[None]).logits[0, position].softmax(dim=-1)
        table = at.dataframe[number].value
        np.testing.assert_allclose(
            table["probability"], 100 * shares.sort(descending=True).values[:5], rtol=1e-3
        )
        known = [
            tokenizer.convert_ids_to_tokens(int(token_id)) for token_id in shares.argsort(descending=True)[:5]
        ]
        assert [row for row in table["token"] if not row.startswith("id ")] == [
            token for token in known if token
        ]
    assert any("chip" in line.value for line in at.markdown) == (not masked)  # with which to mask it


@pytest.mark.parametrize(("name", "second"), [("gpt2", ""), ("bart", "a door")])
def test_other_kinds(name, second, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(name)))
    from attnviz.model.catalogue import offers

    own = [offer.name for offer in offers() if name in offer.name][-1]
    for kind in ("decoder", "cross") if name == "bart" else ("decoder",):
        at = open_page(PAGE, model=own, text="the cat sat", second=second, kind=kind, mask="window")
        assert_no_exception(at)
        assert not at.error
        if kind == "cross":  # the encoder's text has no before and after
            assert not np.isnan(cells(at, "mask_after")).any()
            assert boxes(at, "cross")[:2] == ["decoder's text<br>4 × 10", "encoder's text<br>5 × 10"]
            assert boxes(at, "cross")[5:8] == ["<b>Q</b><br>4 × 2", "<b>K</b><br>5 × 2", "<b>V</b><br>5 × 2"]
            assert any("weights, 4 × 5" in box for box in boxes(at, "cross"))


def test_the_graph_has_the_weights_under_the_mask(door_trace):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, mask="causal")
    expected = numpy_attention.weights(door_trace.query(3, 1), door_trace.key(3, 1), 32**-0.5, allowed=CAUSAL)
    heads = figure(at, "mask_graph")["data"][0]
    for text, weight in zip(heads["text"], heads["customdata"], strict=True):
        key, query = (int(match) for match in re.findall(r"·(\d+)(?: |$)", text))
        assert CAUSAL[query, key] and weight == pytest.approx(expected[query, key], abs=1e-6)
    # The vectors that the weights let through, by the model's own W_O: the longest is not [CLS]'s.
    added = expected[7] * np.linalg.norm(
        door_trace.value(3, 1) @ door_trace.attention(3).output_weight[1], axis=1
    )
    assert expected[7].argmax() == 0 and added.argmax() == 5
    expected_numbers = f"{100 * expected[7].max():.1f}%", f"{added[5]:.2f}", f"{added[0]:.3g}"
    strongest = Facts(("it", "[CLS]", "door", "[CLS]"), numbers=expected_numbers)
    assert strongest in [facts(line.value) for line in at.markdown]
    [drawn] = [
        facts(line.value) for line in at.caption if facts(line.value).has(str(len(heads["text"])), "66")
    ]
    assert drawn.numbers[-1] == f"{100 * sum(heads['customdata']) / 11:.1f}%"


def test_forbidden_cells_are_hatched():
    def hatched(at, chart):
        return [
            element for element in figure(at, chart)["layout"].get("shapes", []) if element["type"] == "path"
        ]

    at = open_page(PAGE, text=DOOR, mask="none", painted="7.5")
    assert hatched(at, "mask_before") == []
    assert hatched(at, "mask_after")[0]["path"] == "M4.5,6.5L5.5,6.5L5.5,7.5L4.5,7.5Z"


def test_a_query_without_keys_has_no_arrow():
    at = open_page(PAGE, text=DOOR, query=7, mask="window", reach=0, painted="7.7")
    assert_no_exception(at)
    assert Facts(("it",)) in [facts(line.value) for line in at.markdown]  # without a key or a number
    assert all("query it·7" not in text for text in figure(at, "mask_graph")["data"][0]["text"])


@pytest.mark.parametrize(
    ("choice", "title"),
    [
        ({"mask": "window"}, "Mask: sliding window"),
        ({"mask": "causal", "painted": (Cell(0, 1),)}, "Mask: causal and painted cells"),
        ({"mask": "none", "painted": (Cell(0, 1),)}, "Mask: painted cells"),
    ],
)
def test_a_mask_is_named(choice, title):
    assert mask_title(view_of(trace_of(0), **choice)) == title
