"""Which heads copy: the grid on the screen is the score of every head."""

import numpy as np
import pytest

import attnviz
from attnviz.effects.copying import copying_scores
from tests import tiny
from tests.app.screen import assert_no_exception, component, open_page, unescaped, until_drawn
from tests.app.views import drawn_of, trace_of, view_of
from ui.rooms.all_heads.copying_scores import copying, finding

PAGE = "pages/all_heads.py"


def test_the_grid_is_the_score_of_every_head(tmp_path, offer_to_workers):
    folder = tiny.save_with_head("llama", tmp_path / "llama")
    offer_to_workers(folder)
    at = until_drawn(open_page(PAGE, model="llama", text="the cat sat", copying=1))
    assert_no_exception(at)
    scores = copying_scores(attnviz.load_model(str(folder)))
    cells = component(at, "copying_grid")["cells"]
    shown = np.array([[float(cell["label"].replace("−", "-")) for cell in row] for row in cells])
    np.testing.assert_allclose(shown, scores, atol=0.006)
    ends = component(at, "copying_grid")["legend"]  # as far below 0 as above it, colours are as strong
    assert float(ends["high"]) == pytest.approx(np.abs(scores).max(), abs=0.006)
    assert ends["low"] == f"−{ends['high']}"
    layer, head = np.unravel_index(scores.argmax(), scores.shape)
    sentences = [unescaped(line.value) for line in at.markdown if "copying score" in line.value]
    assert sentences == [
        f"**{(scores > 0).sum()} of 18 heads have a copying score above 0; layer {layer}, head {head} has the highest, "
        f"{scores.max():#.3g}**"
    ]


def test_the_switch_stands_beside_the_title():
    view = view_of(trace_of(0))
    [row] = drawn_of(view, lambda: copying(view)).main.children.values()
    assert [element.type for element in row.children.values()] == ["subheader", "toggle"]
    layout = row.proto.flex_container
    assert layout.Direction.Name(layout.direction) == "HORIZONTAL"


@pytest.mark.nightly
def test_a_model_without_a_language_head_says_why_it_has_none():
    at = until_drawn(open_page(PAGE, copying=1))
    assert_no_exception(at)
    assert any("no language head" in message.value for message in [*at.error, *at.warning, *at.info])


def test_facts():
    """A head without a number does not count; ties are named."""
    scores = np.array([[0.5, -1.0], [0.5, np.nan]], dtype=np.float32)
    assert finding(scores) == (
        "2 of 3 heads have a copying score above 0; layer 0, head 0 has the highest (1 other is as high), 0.500"
    )
    assert finding(np.full((1, 1), np.nan)) == "No head has a copying score"
