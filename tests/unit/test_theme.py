"""Colours of both themes can be told apart and read; a figure is Plotly's own."""

import json
import pickle
from collections.abc import Callable
from copy import copy, deepcopy

import numpy as np
import pytest
from plotly import graph_objects as go
from plotly import io

from attnviz.figures.theme import (
    DARK,
    LIGHT,
    base_layout,
    difference_scale,
    figure_of,
    number_scale,
    weight_scale,
)
from tests.colours import contrast, linear, luminance, oklab
from tests.findings import assert_none


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_points_can_be_seen_whatever_their_colour(palette) -> None:
    colours = [*palette.groups, palette.value, *(colour for _, colour in number_scale(palette))]
    assert min(contrast(colour, palette.background) for colour in colours) > 2


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_colour_scale_starts_at_the_background_and_is_even(theme, logarithmic: bool) -> None:
    scale = weight_scale(theme, logarithmic=logarithmic)
    places, colours = zip(*scale, strict=True)
    assert (colours[0], colours[-1]) == (theme.background, theme.strong)
    assert places[0] == 0 and places[-1] == pytest.approx(1) and list(places) == sorted(places)
    # CIE 1976 lightness, another definition of even steps than the one the scale is made with
    lightness = np.array([116 * np.cbrt(max(luminance(colour), 0.009)) - 16 for colour in colours])
    steps = np.abs(np.diff(lightness))
    assert (np.diff(lightness) <= 0.5).all() if theme is LIGHT else (np.diff(lightness) >= -0.5).all()
    assert steps.max() < 3 * steps.mean()


def test_logarithmic_scale_tells_small_weights_apart() -> None:
    places = [place for place, _ in weight_scale(LIGHT, logarithmic=True)]
    tones = np.linspace(0, 1, len(places))
    assert np.interp(0.01, places, tones) == pytest.approx(0.5, abs=0.01)  # halfway from 0.0001 to 1


def test_texts_can_be_read() -> None:
    # WCAG 2.2 asks for 4.5 for small text; query and key are Okabe and Ito's colours as they are, and are
    # used at 12 px in bold or beside a shape that says the same.
    assert_none(
        f"{name} of the {theme_name} theme has a contrast of {ratio:.2f}, below {lowest}"
        for theme_name, theme in (("light", LIGHT), ("dark", DARK))
        for name in ("text", "quiet", "query", "key", "key_text", "picked", "failed")
        for lowest in (3.0 if theme is LIGHT and name in ("query", "key") else 4.5,)
        if (ratio := contrast(getattr(theme, name), theme.background)) < lowest
    )


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_tones_lie_evenly_on_a_straight_line_of_oklab(theme) -> None:
    """To half a step of a channel, 1/510, in light as it is sent out, which is at most 2.2 / 510 of white."""
    for colours, end, first in (
        ([colour for _, colour in weight_scale(theme)], theme.strong, 0.0),
        ([colour for _, colour in weight_scale(theme, logarithmic=True)], theme.strong, 0.0),
        ([colour for _, colour in number_scale(theme)], theme.strong, 0.4),
        ([colour for _, colour in difference_scale(theme)[32:]], theme.grows, 0.0),
        ([colour for _, colour in difference_scale(theme)[32::-1]], theme.falls, 0.0),
    ):
        start, stop = oklab(linear(theme.background)), oklab(linear(end))
        for number, colour in enumerate(colours):
            share = first + (1 - first) * number / (len(colours) - 1)
            expected = start + share * (stop - start)
            # OKLab back to sRGB: the nearest colour of 8 bits a channel is nearer than any of its neighbours.
            channels = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
            apart = np.linalg.norm(oklab(linear(colour)) - expected)
            for at in range(3):
                for step in (-1, 1):
                    other = [channel + step * (at == number_) for number_, channel in enumerate(channels)]
                    if 0 <= other[at] <= 255:
                        neighbour = "#" + "".join(f"{channel:02x}" for channel in other)
                        assert apart <= np.linalg.norm(oklab(linear(neighbour)) - expected) + 1e-3


NUMBERS = {
    "i1": np.array([-128, 127]),
    "i2": np.array([0, 128]),
    "i2 below 0": np.array([-129, 0]),
    "i4": np.array([32_768, 0]),
    "too large for plotly.js": np.array([0, 2**31]),
    "unsigned": np.array([0, 255], dtype=np.uint8),
    "i4 as they are": np.array([1, 2], dtype=np.int32),
    "halves": np.array([0.5, 1], dtype=np.float16),
    "floats": np.array([0.5, np.nan], dtype=np.float32),
    "truths": np.array([True, False]),
    "words": np.array(["a", "b"]),
    "objects": np.array([1, None, "a"], dtype=object),
    "none": np.array([], dtype=np.int64),
    "no floats": np.array([], dtype=np.float32),
    "a cube": np.arange(24).reshape(2, 3, 4),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_arrays_of_every_type_are_written_as_plotly_writes_them(name: str) -> None:
    def marks() -> dict[str, object]:
        array = NUMBERS[name].copy()
        return {"type": "scatter", "customdata": array}

    layout = base_layout(LIGHT, height=90)
    assert json.loads(figure_of(marks(), layout).to_json()) == json.loads(
        go.Figure([marks()], layout).to_json()
    )


class TestAFigure:
    @staticmethod
    def drawn() -> go.Figure:
        marks = {"type": "scatter", "x": np.arange(3), "y": np.array([[1.5, np.nan], [0, 1]]), "name": None}
        return figure_of(marks, base_layout(LIGHT, height=90, shapes=[]))

    def test_is_written_as_plotly_writes_it(self) -> None:
        written = json.loads(self.drawn().to_json())
        [trace] = written["data"]
        assert trace == {
            "type": "scatter",
            "x": {"dtype": "i1", "bdata": "AAEC"},
            "y": {"dtype": "f8", "bdata": "AAAAAAAA+D8AAAAAAAD4fwAAAAAAAAAAAAAAAAAA8D8=", "shape": "2, 2"},
        }
        assert written["layout"]["height"] == 90
        built = self.drawn()
        assert built.layout.height == 90  # which builds it
        assert json.loads(built.to_json()) == written

    def test_can_be_changed_copied_and_pickled_as_any_other(self) -> None:
        for figure in (self.drawn(), deepcopy(self.drawn()), pickle.loads(pickle.dumps(self.drawn()))):
            assert isinstance(figure, go.Figure)
            figure.update_layout(height=120)
            assert figure.to_dict()["layout"]["height"] == 120
            with pytest.raises(ValueError, match="height"):
                figure.layout.height = "tall"
        assert not hasattr(self.drawn(), "nothing_of_the_kind")

    @pytest.mark.parametrize(
        "ask",
        [
            str,
            repr,
            copy,
            deepcopy,
            pickle.dumps,
            list,
            vars,
            go.Figure,
            go.Figure.to_json,
            go.Figure.to_html,
            go.Figure.to_plotly_json,
            go.Figure._repr_html_,
            lambda figure: figure == figure,
            lambda figure: figure["layout"],
            lambda figure: "layout" in figure,
            lambda figure: figure.to_dict()["layout"].clear(),
            lambda figure: figure.to_dict()["layout"]["shapes"][0].update(name="another"),
            lambda figure: figure.to_dict()["data"][0]["y"].append(7),
            lambda figure: figure.to_dict()["data"].pop(),
            lambda figure: deepcopy(figure).update_layout(height=70),
        ],
    )
    def test_stays_what_it_is_whatever_is_asked_of_it(self, ask: Callable[[go.Figure], object]) -> None:
        marks = {"type": "scatter", "x": np.arange(3), "y": [1, 2, 3], "name": "a"}
        layout = base_layout(LIGHT, height=90, shapes=[{"type": "rect", "name": "b"}])
        of_plotly = json.loads(go.Figure(deepcopy([marks]), deepcopy(layout)).to_json())
        figure = figure_of(marks, layout)
        for _ in range(2):
            ask(figure)
            assert json.loads(figure.to_json()) == of_plotly
        assert "Plotly.newPlot" in figure.to_html()
        figure.update_layout(title="c")
        ask(figure)
        assert figure.to_dict()["layout"]["title"] == {"text": "c"}

    @pytest.mark.parametrize("renderer", ["plotly_mimetype", "browser", None])
    def test_is_html_too_wherever_a_notebook_saves_it(
        self, renderer: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(io.renderers, "_default_name", renderer)
        monkeypatch.setattr(
            io.renderers, "_default_renderers", [io.renderers[renderer]] if renderer is not None else []
        )
        for figure in (self.drawn(), deepcopy(self.drawn()), self.drawn().update_layout(height=90)):
            bundle = figure._repr_mimebundle_()
            assert "Plotly.newPlot" in bundle["text/html"] and len(bundle["text/html"]) < 10_000
            assert (renderer == "plotly_mimetype") == ("application/vnd.plotly.v1+json" in bundle)

    @pytest.mark.parametrize("display", [go.Figure.show, go.Figure._ipython_display_])
    def test_is_shown_as_html_too_in_a_notebook(
        self, display: Callable[[go.Figure], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown: list[object] = []
        monkeypatch.setattr(io, "show", lambda _figure, *_args, renderer: shown.append(renderer))
        for default, expected in (
            ("plotly_mimetype", "plotly_mimetype+notebook_connected"),
            ("jupyterlab", "jupyterlab+notebook_connected"),
            ("plotly_mimetype+notebook", None),  # which has HTML already
            ("browser", None),
        ):
            monkeypatch.setattr(io.renderers, "_default_name", default)
            getattr(self.drawn(), display.__name__)()
            assert shown.pop() == expected
