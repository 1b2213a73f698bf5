"""What the colours of a map's points stand for."""

from itertools import combinations

import numpy as np
import pytest

import attnviz
from attnviz.figures import draw_projection
from attnviz.figures.theme import DARK
from attnviz.model.model import Model
from attnviz.model.trace import Trace


class TestTint:
    def figure(self, trace: Trace, tint: str, **options):
        projection = attnviz.project(trace, 2, 3, method="pca")
        return draw_projection(projection, tint=tint, theme="dark", **options)

    def legend(self, figure) -> dict[str, str]:
        return {
            trace_of_figure.name: trace_of_figure.line.color
            for trace_of_figure in figure.data
            if trace_of_figure.mode == "lines" and trace_of_figure.name
        }

    def colours(self, figure, role: str) -> list[str]:
        (points,) = [
            trace_of_figure
            for trace_of_figure in figure.data
            if trace_of_figure.name == role and trace_of_figure.customdata is not None
        ]
        return list(points.marker.color)

    def test_equal_tokens_have_one_colour_as_queries_and_keys(self, pair_trace: Trace) -> None:
        figure = self.figure(pair_trace, "token")
        queries = self.colours(figure, "queries")
        labels = pair_trace.tokens.labels
        assert queries == self.colours(figure, "keys")
        for position, other in combinations(range(len(labels)), 2):
            named = {labels[position], labels[other]} <= self.legend(figure).keys()
            assert not named or (queries[position] == queries[other]) == (labels[position] == labels[other])
        assert queries[labels.index("the")] == self.legend(figure)["the"] in DARK.groups

    def test_tokens_without_a_colour_are_others(self, embedded: Model) -> None:
        trace = embedded.trace("one two three four five six seven eight nine ten one one")
        legend = self.legend(self.figure(trace, "token"))
        assert len(legend) == len(DARK.groups) + 1
        assert next(iter(legend)) == "one" and list(legend)[-1] == "other tokens"

    def test_positions_mod_5(self, pair_trace: Trace) -> None:
        figure = self.figure(pair_trace, "position mod 5")
        legend = self.legend(figure)
        assert list(legend) == [f"position {rest} mod 5" for rest in range(5)]
        assert self.colours(figure, "keys")[7] == legend["position 2 mod 5"]

    def test_parts_of_words(self, embedded: Model) -> None:
        trace = embedded.trace("Unbelievably odd.")
        figure = self.figure(trace, "part of word")
        assert trace.tokens.labels[:4] == ("[CLS]", "un", "##bel", "##ie")
        legend = self.legend(figure)
        parts = [
            "special token",
            "first piece of a word",
            "further piece of a word",
            "further piece of a word",
        ]
        assert self.colours(figure, "queries")[:4] == [legend[part] for part in parts]
        odd = trace.tokens.labels.index("odd")
        assert self.colours(figure, "queries")[odd] == legend["whole word"]

    def test_special_tokens(self, pair_trace: Trace) -> None:
        figure = self.figure(pair_trace, "special")
        legend = self.legend(figure)
        expected = [
            legend["special token" if is_special else "token of the text"]
            for is_special in pair_trace.tokens.is_special
        ]
        assert self.colours(figure, "queries") == expected

    def test_lengths_have_a_bar(self, pair_trace: Trace) -> None:
        lengths = np.linspace(3, 7, 2 * len(pair_trace.tokens), dtype=np.float32)
        figure = self.figure(pair_trace, "norm", lengths=lengths)
        np.testing.assert_array_equal(self.colours(figure, "queries"), lengths[: len(pair_trace.tokens)])
        (bar,) = [
            trace_of_figure.marker for trace_of_figure in figure.data if trace_of_figure.marker.showscale
        ]
        assert (bar.cmin, bar.cmax) == (3, 7)
        assert bar.colorbar.title.text == "length of the vector"

    def test_positions_have_a_bar(self, pair_trace: Trace) -> None:
        figure = self.figure(pair_trace, "position")
        assert self.colours(figure, "keys") == list(range(len(pair_trace.tokens)))

    @pytest.mark.parametrize("tint", ["token", "position"])
    def test_shapes_still_tell_the_role(self, pair_trace: Trace, tint: str) -> None:
        figure = self.figure(pair_trace, tint)
        shapes = {
            trace_of_figure.name: trace_of_figure.marker.symbol
            for trace_of_figure in figure.data
            if trace_of_figure.customdata is None and trace_of_figure.mode == "markers"
        }
        assert shapes["queries"] == "circle" and shapes["keys"] == "diamond"

    def test_names_of_hostile_tokens_are_safe(self, embedded: Model) -> None:
        figure = self.figure(embedded.trace("<b> $x$ <b>"), "token")
        assert "&lt;" in self.legend(figure)
        assert not any(mark in name for name in self.legend(figure) for mark in "<>$")
