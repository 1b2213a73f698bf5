"""A set of prompts in Effects and Lens: means and spreads are those of runs made anew here, and all rooms have one table."""

import statistics

import numpy as np
import pytest
import torch

import attnviz
from attnviz.figures.theme import Figure
from attnviz.model.interventions import ScaledOutput
from tests import tiny
from tests.app.screen import (
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    figure,
    headline,
    numbers,
    open_page,
    unescaped,
    until_drawn,
)
from tests.chatting import chat_tokenizer
from ui.rooms.cause import prompts as section

ROWS = (
    ("the cat sat on", "the dog sat on", "a", "b"),
    ("a mat when it", "a mat when he", "b", "a"),
    ("the cat", "the cats", "a", "b"),
    ("a dog ran on it", "a cat ran on it", "a", "b"),
)
"""The third pair has prompts of different lengths."""
GOOD = (0, 1, 3)


@pytest.fixture
def folder(headed, monkeypatch, offer_to_workers):
    """A tiny GPT-2 with a language head, on offer."""
    _, folder = headed("gpt2")
    offer_to_workers(folder)
    monkeypatch.setattr(section, "OF_DECODERS", ROWS)
    return folder.name


def in_cells(at, key):
    """Mean and standard deviation that the grid says of each head, [layer head]."""
    cells = component(at, key)["cells"]
    in_grid = [[facts(cell["text"]) for cell in of_layer] for of_layer in cells]
    for layer, of_layer in enumerate(in_grid):
        for head, in_cell in enumerate(of_layer):
            assert in_cell.heads == ((layer, head),)
    return np.array(
        [[[number(part) for part in in_cell.numbers] for in_cell in of_layer] for of_layer in in_grid]
    )


def number(written):
    """A number as it is shown."""
    written = written.replace("−", "-")
    digits, _, power = written.partition("\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10")
    superscripts = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    return float(digits) * 10.0 ** int(power.translate(superscripts) or 0)


def difference(model, row, **changed):
    """The answer's logit minus the wrong answer's after the last token, with the language head of the checkpoint."""
    states = torch.tensor(model.trace(row[0], **changed).last_hidden_state[-1]).double()
    logits = model.language_head.lm_head.weight.detach().double() @ states
    first, second = model.tokenizer.convert_tokens_to_ids([row[2], row[3]])
    return float(logits[first] - logits[second])


def head_off(model, row, layer, head):
    return difference(model, row, interventions=[ScaledOutput(layer=layer, head=head, factor=0.0)])


def saved(at, monkeypatch):
    """What the lines of "Copy as Python" compute."""
    monkeypatch.setattr(Figure, "show", lambda self: None)
    names = {}
    exec(component(at, "save_picture")["python"], names)
    return names["over"]


def test_effects_on_every_pair(folder, headed, monkeypatch):
    model, _ = headed("gpt2")
    at = until_drawn(open_page("pages/effects.py", model=folder, text="the cat sat", prompts="set"))
    assert_no_exception(at)
    drawn = in_cells(at, "effects_grid")
    for layer, head in np.ndindex(*drawn.shape[:2]):
        changes = [head_off(model, ROWS[pair], layer, head) - difference(model, ROWS[pair]) for pair in GOOD]
        expected = [statistics.mean(changes), statistics.stdev(changes)]
        np.testing.assert_allclose(drawn[layer, head], expected, rtol=6e-3, atol=1e-5)
    largest = np.unravel_index(np.abs(drawn[..., 0]).argmax(), drawn.shape[:2])
    in_headline = facts(headline(at))
    assert in_headline.heads == (tuple(int(index) for index in largest),)
    assert in_headline.numbers[-2] == "3"
    assert "Line 3: " in unescaped(captions(at)) and "tokens, and differ in" in unescaped(captions(at))
    over_pairs = saved(at, monkeypatch)
    np.testing.assert_allclose(over_pairs.effects.mean, drawn[..., 0], rtol=6e-3, atol=1e-5)


def test_a_set_is_read_in_the_template(tmp_path, monkeypatch, offer_to_workers):
    """On the page, and by the lines of "Copy as Python"."""
    folder = tiny.save_with_head("llama", tmp_path / "chatting")
    chat_tokenizer().save_pretrained(folder)
    offer_to_workers(folder)
    rows = (("ab", "cb", "b", "c"), ("da", "db", "a", "b"))
    monkeypatch.setattr(section, "OF_DECODERS", rows)
    page = open_page("pages/effects.py", model="chatting", text="ab", prompts="set", template="chat")
    at = until_drawn(page)
    assert_no_exception(at)
    model = attnviz.load_model(str(folder))
    over_pairs = saved(at, monkeypatch)
    off = {"interventions": [ScaledOutput(layer=1, head=4, factor=0.0)]}
    chat = {"template": "chat"}
    changes = [difference(model, row, **chat, **off) - difference(model, row, **chat) for row in rows]
    mean = pytest.approx(statistics.mean(changes), rel=6e-3, abs=1e-5)
    assert in_cells(at, "effects_grid")[1, 4, 0] == mean
    assert over_pairs.effects.mean[1, 4] == mean


def test_direct_effects_on_every_pair(folder, headed, monkeypatch):
    """In the last layer, a direct effect is what the number loses without the head, except for the scale of the last norm."""
    model, _ = headed("gpt2")
    at = until_drawn(open_page("pages/lens.py", model=folder, text="the cat sat", prompts="set"))
    assert_no_exception(at)
    drawn = in_cells(at, "lens_heads")
    over_pairs = saved(at, monkeypatch)
    np.testing.assert_allclose(over_pairs.heads.mean, drawn[..., 0], rtol=6e-3, atol=1e-5)
    np.testing.assert_allclose(over_pairs.heads.spread, drawn[..., 1], rtol=6e-3, atol=1e-5)
    outcomes = [difference(model, ROWS[pair]) for pair in GOOD]
    assert over_pairs.totals.pairs.tolist() == pytest.approx(outcomes, abs=1e-5)
    bars = figure(at, "lens_layer_parts")["data"]
    shown = sum(float(numbers(bar["y"]).sum()) for bar in bars) + over_pairs.mean.bias
    assert shown == pytest.approx(statistics.mean(outcomes), abs=1e-4)
    np.testing.assert_allclose(numbers(bars[0]["error_y"]["array"]), over_pairs.attention.spread, atol=1e-6)
    [sentence] = [element.value for element in at.markdown if "3 pairs" in element.value]
    assert facts(sentence).heads == (
        tuple(divmod(int(np.abs(over_pairs.heads.mean).argmax()), drawn.shape[1])),
    )


def test_all_rooms_have_one_table(folder):
    """A file uploaded in one room is shown in the others."""
    at = until_drawn(open_page("pages/effects.py", model=folder, text="the cat sat", prompts="set"))
    [uploader] = [element for element in at.file_uploader if element.key.startswith("prompts_file")]
    data = b"clean,corrupted,answer,wrong_answer\nthe cat sat,the dog sat,a,b\nthe cat,,a,b\n"
    at = until_drawn(uploader.set_value(("pairs.csv", data, "text/csv")).run())
    assert "1 pair" in headline(at)
    for page in ("pages/lens.py", "pages/patching.py"):
        at.switch_page(page)
        at = until_drawn(at.run())
        assert any(expander.label == "1 pair of prompts" for expander in at.expander)
        assert any("Line 3 has no corrupted" in error for error in errors(at))
        assert any("mean over 1 pair)" in unescaped(element.value) for element in at.markdown)
