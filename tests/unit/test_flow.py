"""Which lines are drawn: thresholds and the bound, against loops written from their definitions."""

import csv
import io

import numpy as np
import pytest

from attnviz.figures.theme import DARK, LIGHT
from attnviz.heads.flow import MOST_LINES, above_share, above_weight, lines_csv, strongest_lines
from attnviz.records import AllHeads, Axis, Head
from tests.colours import SEEN, contrast, seen

MATRICES, QUERIES, KEYS = 2, 5, 7


@pytest.fixture
def matrices():
    return np.random.default_rng(0).dirichlet(np.full(KEYS, 0.5), size=(MATRICES, QUERIES)).astype(np.float32)


class TestShare:
    @pytest.mark.parametrize("share", [0.1, 0.35, 0.7, 0.95])
    def test_lets_pass_the_strongest_keys_until_they_hold_it(self, matrices, share):
        above = above_share(matrices, share)
        for row, let_pass in zip(matrices.reshape(-1, KEYS), above.reshape(-1, KEYS), strict=True):
            expected, held = set(), 0.0
            for key in sorted(range(KEYS), key=lambda key: -row[key]):  # exBERT's loop
                if held < share * row.sum(dtype=np.float64):
                    expected.add(key)
                    held += float(row[key])
            assert set(np.flatnonzero(let_pass)) == expected

    def test_on_paper(self):
        rows = np.array([[[0.1, 0.6, 0.3], [0.2, 0.3, 0.5]]], dtype=np.float32)
        assert above_share(rows, 0.55).tolist() == [[[False, True, False], [False, True, True]]]

    def test_of_all_is_all_but_nothing(self):
        rows = np.array([[[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]], dtype=np.float32)
        assert above_share(rows, 1.0).tolist() == [[[True, False, True], [False] * 3]]

    def test_is_of_what_a_row_holds(self):
        """Rows of norm-based weights, or without special tokens, do not sum to 1."""
        rows = np.array([[[10.0, 2.0, 1.0], [0.01, 0.06, 0.03]]], dtype=np.float32)
        assert above_share(rows, 0.7).tolist() == [[[True, False, False], [False, True, True]]]

    def test_equals_are_treated_alike(self):
        assert above_share(np.full((1, 1, 4), 0.25, dtype=np.float32), 0.3).all()


def test_weight_lets_pass_what_is_as_strong_and_never_nothing():
    rows = np.array([[[0.5, 0.25, 0.0]]], dtype=np.float32)
    assert above_weight(rows, 0.25).tolist() == [[[True, True, False]]]
    assert above_weight(rows, 0.3).tolist() == [[[True, False, False]]]
    assert above_weight(rows, 0.0).tolist() == [[[True, True, False]]]


class TestStrongest:
    def test_are_all_while_they_are_few(self, matrices):
        above = above_weight(matrices, 0.1)
        flow = strongest_lines(matrices, above)
        drawn = {tuple(map(int, line)) for line in zip(flow.matrix, flow.query, flow.key, strict=True)}
        assert drawn == {tuple(map(int, cell)) for cell in np.argwhere(above)}
        np.testing.assert_array_equal(flow.weight, matrices[flow.matrix, flow.query, flow.key])
        assert (np.diff(flow.weight) >= 0).all()
        assert (len(flow), flow.n_left_out) == (above.sum(), 0)
        assert flow.share == pytest.approx(matrices[above].sum() / matrices.sum())

    def test_are_the_strongest_of_all_matrices_where_they_are_many(self, matrices):
        flow = strongest_lines(matrices, matrices > 0, most=11)
        np.testing.assert_array_equal(flow.weight, np.sort(matrices, axis=None)[-11:])
        assert flow.n_left_out == (matrices > 0).sum() - 11
        assert flow.share == pytest.approx(np.sort(matrices, axis=None)[-11:].sum() / matrices.sum())

    def test_of_one_query_come_first(self, matrices):
        above = above_weight(matrices, 0.02)
        flow = strongest_lines(matrices, above, whole_row=3, most=11)
        of_query = flow.query == 3
        assert of_query.sum() == min(11, above[:, 3].sum())
        others = np.where(above, matrices, 0)
        others[:, 3] = 0
        rest = np.sort(others, axis=None)[::-1][: 11 - of_query.sum()]
        np.testing.assert_array_equal(np.sort(flow.weight[~of_query])[::-1], rest)

    def test_are_bounded_whatever_the_text(self):
        matrices = np.full((3, 512, 512), 1 / 512, dtype=np.float32)
        flow = strongest_lines(matrices, matrices > 0)
        assert len(flow) == MOST_LINES
        assert flow.n_left_out == 3 * 512 * 512 - MOST_LINES

    def test_of_nothing_are_none(self):
        matrices = np.zeros((1, 2, 3), dtype=np.float32)
        flow = strongest_lines(matrices, above_share(matrices, 0.7), whole_row=1)
        assert (len(flow), flow.share) == (0, 0.0)


def test_csv_has_every_line_the_strongest_first(embedded):
    trace = embedded.trace('=1+1 "odd", said')
    axis = Axis.of(trace.tokens)
    matrices = np.stack([trace.weights(2, 10), trace.pattern(4, None).weights])
    flow = strongest_lines(matrices, above_weight(matrices, 0.05))
    rows = list(
        csv.reader(io.StringIO(lines_csv(flow, [Head(2, 10), AllHeads(4)], axis, axis).decode("utf-8-sig")))
    )
    assert rows[0] == ["layer", "head", "query", "key", "number"]
    assert len(rows) - 1 == len(flow) > 20
    numbers = [float(row[4]) for row in rows[1:]]
    assert numbers == sorted(numbers, reverse=True)
    labels = [f"{position} {label}" for position, label in enumerate(trace.tokens.labels)]
    assert "1 =" in labels and '5 "' in labels
    for layer, head, query, key, number in rows[1:]:
        which = {("2", "10"): 0, ("4", "all"): 1}[layer, head]
        assert np.float32(number) == matrices[which, labels.index(query), labels.index(key)]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
class TestColoursOfHeads:
    def test_stand_out_from_the_background(self, theme):
        """WCAG 2.2, success criterion 1.4.11: 3 to 1 for what a figure is read by."""
        for colour in theme.heads:
            assert contrast(colour, theme.background) >= 3, colour

    @pytest.mark.parametrize("eyes", SEEN)
    def test_can_be_told_apart(self, theme, eyes):
        as_seen = [seen(head, eyes) for head in theme.heads]
        for i, colour in enumerate(as_seen):
            for other in as_seen[:i]:
                assert np.linalg.norm(colour - other) >= 0.1

    def test_have_no_other_meaning(self, theme):
        meant = {theme.query, theme.key, theme.picked, theme.failed, theme.text, theme.quiet}
        assert not meant & set(theme.heads)
        assert theme.heads[0] == theme.strong
