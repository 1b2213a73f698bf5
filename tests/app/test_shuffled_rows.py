"""Whether a row matters, on the stage, and the grid of all heads' rows in Heads off."""

import csv
import io
from dataclasses import replace

import numpy as np

from attnviz import shuffled_heads, shuffled_row
from attnviz.model.catalogue import SMOLLM2
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    open_page,
    settle,
    until_drawn,
)
from ui.words.shuffled_rows import row_words

GIFT = "When Mary and John went to the store, John gave a drink to"


def pictures(at) -> list[str]:
    return [figure["name"] for figure in component(at, "save_picture")["figures"]]


def asked(at):
    at.button(key="row_matters").click()
    return until_drawn(at.run())


def test_a_row_of_the_encoder_turns_its_own_state(embedded):
    at = asked(open_page())
    assert_no_exception(at)
    row = shuffled_row(embedded, embedded.trace(DOOR), 3, 1, 7)
    assert f"{row.change:#.3g}" in captions(at) and f"p = {row.p:.2g}" in captions(at)
    assert "19 orders" in captions(at) and "Shuffled among its keys, this row" in captions(at)


def test_another_row_is_asked_for_anew_and_hidden_special_tokens_keep_their_weights(embedded):
    at = asked(open_page())
    settle(at, query=3)
    assert "Shuffled among" not in captions(at)
    assert "row_matters" in {button.key for button in at.button}
    at = asked(open_page(special="hidden"))
    row = shuffled_row(embedded, embedded.trace(DOOR), 3, 1, 7, keeps_special=True)
    assert f"{row.change:#.3g}" in captions(at) and "other than special tokens" in captions(at)


def test_a_decoder_is_judged_by_the_next_token():
    at = asked(open_page(model=SMOLLM2, text=GIFT, layer=0, head=0))
    assert_no_exception(at)
    assert "of the next token's probability" in captions(at)


def test_the_grid_of_all_heads(embedded, taken):
    """In the cells, the ranking and the CSV; what is not drawn is no picture to export."""
    at = until_drawn(open_page("pages/effects.py", outcome="state:7"))
    assert "Rows shuffled" not in pictures(at)
    at.button(key="shuffled_act").click()
    until_drawn(at.run())
    assert not errors(at)
    found = shuffled_heads(embedded, embedded.trace(DOOR), 7, "state:7")
    cells = component(at, "effects_shuffled")["cells"]
    written = np.array([[float(cell["label"]) for cell in row] for row in cells])
    np.testing.assert_allclose(written, found.heads, atol=0.0006)
    best = found.ranked()[0]
    rows = component(at, "effects_shuffled_ranking")["rows"]
    assert facts(rows[0]["text"]).heads == ((best.layer, best.head),)
    assert f"{found.p_values[best]:.2g}" in cells[best.layer][best.head]["text"]
    assert "Rows shuffled" in pictures(at)
    table = csv.DictReader(io.StringIO(taken["take_csv"][1]().decode("utf-8-sig")))
    of_heads = [row for row in table if row["head"] != "all"]
    for column, expected in (("row_change", found.heads), ("row_p", found.p_values)):
        np.testing.assert_allclose([float(row[column]) for row in of_heads], expected.ravel(), rtol=1e-5)


def test_words_of_rows_that_tell_nothing_and_of_heads_that_nothing_reads(embedded):
    row = shuffled_row(embedded, embedded.trace(DOOR), 3, 1, 7)
    even = replace(row, orders=row.orders[:0], changes=row.changes[:0], distances=row.distances[:0])
    assert "tells nothing" in row_words(even, keeps_special=False)
    silent = replace(row, changes=row.changes * 0)
    assert "changes nothing" in row_words(silent, keeps_special=False)
