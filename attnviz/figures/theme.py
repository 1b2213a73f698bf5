"""Every colour and font of attnviz, for the light and the dark theme, and the figures that have them.

A meaning has the same colour everywhere, and also a shape or a place.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

import numpy as np
from plotly import graph_objects as go
from plotly import io

ThemeName = Literal["light", "dark"]
Colour = Literal["linear", "logarithmic"]

FONT = '"Source Sans", "Source Sans 3", "Source Sans Pro", system-ui, sans-serif'
TOKEN_FONT = '"Source Code", "Source Code VF", "Source Code Pro", ui-monospace, monospace'
FONT_SIZE = 13
SMALL_FONT_SIZE = 12
"""Smallest text in a figure, px; readable from the back of a classroom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of one theme.

    Query, key and value are the blue, the vermilion and the bluish green of Okabe and Ito 2008, "Color Universal
    Design", which readers with any kind of colour blindness tell apart; lighter on the dark background.
    """

    background: str
    text: str
    quiet: str
    """Axis titles, notes and helper lines."""
    query: str
    key: str
    key_text: str
    """The key's colour for small letters, which need more contrast than marks: WCAG 2.2, success criterion 1.4.3."""
    value: str
    picked: str
    edge: str
    """Borders of chips and cells."""
    strong: str
    """The weight 1: the far end of the scale that starts at the background."""
    failed: str
    falls: str
    """The largest difference below 0: one end of the scale with the background in its middle."""
    grows: str
    """The largest difference above 0. Both ends are equally far from the background, and distinct for readers with
    any kind of colour blindness."""
    heads: tuple[str, ...]
    """Heads drawn over each other, the selected head first, in the tone of its weights; dashes distinguish them too.
    Any two are at least 0.1 apart in OKLab, also for readers with any kind of colour blindness."""
    groups: tuple[str, ...]
    """Groups of points, whose shape shows their role. Paul Tol 2021, "Colour Schemes" (SRON/EPS/TN/09-002), the
    scheme "muted" and, on the dark background, "light", without colours close to the background."""


LIGHT = Theme(
    background="#ffffff",
    text="#1f2430",
    quiet="#5b6270",
    query="#0072b2",
    key="#d55e00",
    key_text="#b34f00",
    value="#009e73",
    picked="#b0208f",
    edge="#c3c9d4",
    strong="#0a2a5e",
    failed="#b3261e",
    falls="#8c3a00",
    grows="#005b6e",
    heads=("#0a2a5e", "#c08400", "#6f3fc4", "#4d9a9a"),
    groups=("#332288", "#44aa99", "#cc6677", "#999933", "#aa4499", "#117733", "#882255"),
)
DARK = Theme(
    background="#0e1117",
    text="#f1f3f7",
    quiet="#a7afbd",
    query="#56b4e9",
    key="#ff8c42",
    key_text="#ff8c42",
    value="#2bd1a0",
    picked="#ff7ddb",
    edge="#4a5261",
    strong="#dcebff",
    failed="#ff8a80",
    falls="#ffb05c",
    grows="#4cd6d6",
    heads=("#dcebff", "#e69f00", "#9a7bff", "#3fb8a8"),
    groups=("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#44bb99", "#99ddff", "#bbcc33"),
)
THEMES: dict[ThemeName, Theme] = {"light": LIGHT, "dark": DARK}

SELECTION = "selection"
"""Name of the shapes that show what is selected, which a saved picture leaves out."""

Marks = dict[str, Any]
"""What plotly calls a trace, with its ``type``."""

_NO_TEMPLATE = {"data": {"scatter": [{"type": "scatter"}]}}
"""An empty template, as plotly writes it; the default one adds 7 kB to every figure."""

_SCALE_STEPS = 33
LOG_DECADES = 4
"""Decades below the largest weight that a logarithmic scale covers."""


def weight_scale(theme: Theme, *, logarithmic: bool = False) -> list[tuple[float, str]]:
    """Colour scale from the page's background (0) to a strong tone (1), perceptually uniform.

    A straight line in OKLab, whose lightness is perceptually uniform. With ``logarithmic`` the tones are
    set at equal ratios of the weight instead of equal steps, over four decades.
    """
    tones = np.linspace(0.0, 1.0, _SCALE_STEPS)
    places = 10.0 ** (LOG_DECADES * (tones - 1.0)) if logarithmic else tones
    places[0] = 0.0
    colours = _tones(theme.background, theme.strong, tones)
    return [(float(place), colour) for place, colour in zip(places, colours, strict=True)]


def number_scale(theme: Theme) -> list[tuple[float, str]]:
    """Colour scale for points, on which the smallest number is as visible as the largest."""
    tones = np.linspace(0.0, 1.0, 9)
    return list(zip(tones.tolist(), _tones(theme.background, theme.strong, 0.4 + 0.6 * tones), strict=True))


def difference_scale(theme: Theme) -> list[tuple[float, str]]:
    """Colour scale of differences from one strong tone (0) through the page's background (0.5) to another (1).

    Two straight lines in OKLab, as in `weight_scale`: equal differences are equally strong whatever their sign.
    """
    tones = np.linspace(0.0, 1.0, _SCALE_STEPS)
    below = _tones(theme.background, theme.falls, tones[:0:-1])
    above = _tones(theme.background, theme.grows, tones)
    places = np.linspace(0.0, 1.0, 2 * _SCALE_STEPS - 1)
    return [(float(place), colour) for place, colour in zip(places, below + above, strict=True)]


def _tones(start: str, end: str, shares: np.ndarray) -> list[str]:
    """Colours at these shares of the straight line in OKLab from one colour to another."""
    return [_tone(start, end, float(share)) for share in shares]


@lru_cache(maxsize=4096)
def _tone(start: str, end: str, share: float) -> str:
    """The colour at one share; scales ask for the same ones with every picture."""
    first, last = _to_oklab(start), _to_oklab(end)
    return _from_oklab(first + share * (last - first))


# OKLab: Björn Ottosson 2020, "A perceptual color space for image processing", matrices M1 and M2;
# sRGB's transfer curve: IEC 61966-2-1:1999.
_LINEAR_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LMS_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def _to_oklab(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.asarray(_LMS_TO_LAB @ np.cbrt(_LINEAR_TO_LMS @ linear))


def _from_oklab(lab: np.ndarray) -> str:
    linear = np.linalg.solve(_LINEAR_TO_LMS, np.linalg.solve(_LMS_TO_LAB, lab) ** 3).clip(0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in srgb)


def signed(end: float, theme: Theme) -> Marks:
    """The colours of a heatmap of numbers below and above 0, from the one end to the other."""
    return {"zmin": -end, "zmax": end, "colorscale": difference_scale(theme)}


def axis_title(text: str, colour: str) -> dict[str, object]:
    """The title of an axis, small and close to the axis."""
    return {"text": text, "font": {"color": colour, "size": SMALL_FONT_SIZE}, "standoff": 4}


def plain_axis(**own: object) -> dict[str, object]:
    """An axis without lines that cannot be zoomed, with small letters; ``own`` is the rest of it."""
    small = {"size": SMALL_FONT_SIZE}
    return {"showgrid": False, "zeroline": False, "fixedrange": True, "tickfont": small, **own}


def cell_axis(**own: object) -> dict[str, object]:
    """The axis of a heatmap."""
    return plain_axis(ticks="", **own)


def bare_axis(**own: object) -> dict[str, object]:
    """The axis of a curve or of scattered points without a grid: room for its labels, and numbers in powers of ten."""
    return plain_axis(exponentformat="power", automargin=True, **own)  # not a unit prefix, as in "20µ"


def grid_axis(palette: Theme, title: str | None = None, **own: object) -> dict[str, object]:
    """The same with a grid."""
    titled = {} if title is None else {"title": axis_title(title, palette.quiet)}
    return bare_axis() | {"showgrid": True, "gridcolor": palette.edge} | titled | own


def hidden_axis(**own: object) -> dict[str, object]:
    """An axis that is not drawn, and cannot be zoomed."""
    return {"visible": False, "fixedrange": True, **own}


def named_rows(names: Mapping[str, str]) -> dict[str, object]:
    """The axis of bars that lie, each with a name of `aliases`, the first on top."""
    return {
        "type": "category",
        "labelalias": names,
        "autorange": "reversed",
        "automargin": True,
        "ticks": "",
        "fixedrange": True,
        "tickfont": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE},
    }


def token_ticks(places: object, names: object) -> dict[str, object]:
    """Tokens beside an axis, with room for them."""
    font = {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE}
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": names}
    return ticks | {"tickfont": font, "automargin": True}


def points_at(x: object, y: object, marker: Marks, **own: object) -> Marks:
    """Points that may stick out of the axes; ``own`` is the rest of the trace."""
    return dict(type="scatter", mode="markers", x=x, y=y, marker=marker, cliponaxis=False) | own


def framed(is_picked: np.ndarray, sizes: tuple[int, int], palette: Theme, **own: object) -> Marks:
    """The marker of points in the strong tone of which the picked one is larger, opaque and framed."""
    line = {"width": np.where(is_picked, 2.5, 0), "color": palette.picked}
    sized = {"size": np.where(is_picked, sizes[1], sizes[0]), "opacity": np.where(is_picked, 1.0, 0.55)}
    return {"color": palette.strong, "line": line} | sized | own


def diamond(is_picked: np.ndarray, sizes: tuple[int, int], symbol: str = "circle", **own: object) -> Marks:
    """The marker of points of which the picked one is a larger diamond."""
    size = np.where(is_picked, sizes[1], sizes[0])
    return {"size": size, "symbol": np.where(is_picked, "diamond", symbol)} | own


def line(first: tuple[object, object], last: tuple[object, object], colour: str, **own: object) -> Marks:
    """A thin dotted line below what is drawn."""
    ends = {"x0": first[0], "y0": first[1], "x1": last[0], "y1": last[1]}
    return {
        "type": "line",
        **ends,
        "layer": "below",
        "line": {"color": colour, "width": 1, "dash": "dot"},
    } | own


def colour_bar(title: str = "") -> dict[str, object]:
    """A thin bar of a colour scale beside the figure, its title read upwards."""
    named = {"title": {"text": title, "side": "right", "font": {"size": SMALL_FONT_SIZE}}} if title else {}
    return {
        **named,
        "thickness": 8,
        "outlinewidth": 0,
        "exponentformat": "power",  # not a unit prefix, as in "20µ"
        "tickfont": {"size": SMALL_FONT_SIZE},
    }


def legend_above(**own: object) -> dict[str, object]:
    """A legend in one line above the figure."""
    return {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0} | own


def panel_title(text: str, top: float, colour: str) -> dict[str, object]:
    """The title of a panel that ends at this height, 0 to 1 of the figure: above its left end."""
    along = {"xref": "paper", "x": 0, "xanchor": "left"}
    return note(text, colour, **along, yref="paper", y=top, yanchor="bottom")


def note(text: str, colour: str | None = None, **own: object) -> dict[str, object]:
    """Small words in a figure, in the colour of its text where none is given."""
    font = {"size": SMALL_FONT_SIZE} | ({} if colour is None else {"color": colour})
    return {"text": text, "showarrow": False, "font": font, **own}


def outline(x: tuple[float, float], y: tuple[float, float], colour: str, *, width: int) -> dict[str, object]:
    """A frame around selected cells, from edge to edge."""
    return {
        "type": "rect",
        "name": SELECTION,
        **{"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]},
        "line": {"color": colour, "width": width},
    }


_TYPES = {"i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"}
"""Types of arrays that plotly.js reads, by their names in numpy."""


class Figure(go.Figure):  # type: ignore[misc]
    """A Plotly figure that is built when anything but its `to_dict` is asked of it.

    Building its objects and reading them again takes most of the time of drawing it, and a page only sends what they are
    built from. Plotly takes that as it is: checking each field would take as long again. The tests have every figure built,
    checked and compared (`checked_figures` of tests/conftest.py); what is changed in one later is checked by plotly as usual.
    """

    def __init__(self, traces: list[Marks], layout: dict[str, object]) -> None:
        self.__dict__["_made_of"] = traces, layout

    def __getattr__(self, name: str) -> Any:
        """What is there once the figure is built."""
        made_of = self.__dict__.pop("_made_of", None)
        if made_of is None:
            return super().__getattribute__(name)
        self.__dict__.pop("_as_dict", None)
        super().__init__(*made_of, _validate=False)
        for part in (self, self.layout, *self.data):
            part._validate = True
        return getattr(self, name)

    def __reduce__(self) -> Any:
        """Copies and pickles are built, and checked by Plotly."""
        return _built, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """The figure as Plotly's JSON has it, with arrays as base64 of their bytes; whoever asks may change it."""
        if "_made_of" not in self.__dict__:
            return cast(dict[str, Any], super().to_dict())
        if "_as_dict" not in self.__dict__:
            traces, layout = self.__dict__["_made_of"]
            self.__dict__["_as_dict"] = {"data": _written(traces), "layout": _written(layout)}
        return cast(dict[str, Any], _copied(self.__dict__["_as_dict"]))

    def show(self, *args: Any, **kwargs: Any) -> None:
        """As in Plotly; in a notebook with HTML beside Plotly's own format."""
        beside = {} if args else {"renderer": _renderer()}
        io.show(self, *args, **beside | kwargs)

    def _ipython_display_(self) -> None:
        if io.renderers.render_on_display and io.renderers.default:
            self.show()
        else:
            print(repr(self))

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(*args, **kwargs) if io.renderers.default else {}
        return {"text/html": self.to_html(full_html=False, include_plotlyjs="cdn"), **bundle}


def _built(written: dict[str, Any]) -> Figure:
    """A figure that is built at once, from what `Figure.to_dict` gives."""
    figure = Figure.__new__(Figure)
    go.Figure.__init__(figure, written)
    return figure


def _renderer() -> str | None:
    """The renderers of this notebook, with HTML beside Plotly's own format; None for what plotly has chosen.

    Plotly 7.1.0 gives a Jupyter kernel its own format alone, which nbconvert 7.17 leaves out of HTML.
    """
    default = io.renderers.default
    if not default or any(not isinstance(io.renderers[name], _OWN_FORMAT) for name in default.split("+")):
        return None
    return f"{default}+notebook_connected"


_OWN_FORMAT = type(io.renderers["plotly_mimetype"])
"""The class of the renderers that give a figure as Plotly's JSON alone."""


def _copied(value: Any) -> Any:
    """The same dicts and lists, which can be changed; what they hold is shared."""
    if isinstance(value, dict):
        return {name: _copied(entry) for name, entry in value.items()}
    return [_copied(entry) for entry in value] if isinstance(value, list) else value


def _written(value: Any) -> Any:
    """What Plotly's JSON has for a value: without what is None, and with arrays of numbers as `to_dict` has them."""
    if isinstance(value, dict):
        return {name: _written(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_written(entry) for entry in value]
    return _typed(value) if isinstance(value, np.ndarray) else value


def _typed(array: np.ndarray) -> dict[str, str] | list[Any]:
    """An array as plotly.js reads it: its type, bytes and shape; as a list where it has no such type."""
    if array.dtype == np.int64 and array.size:
        ends = np.array([array.min(), array.max()])
        array = array.astype(
            next((kind for kind in ("i1", "i2", "i4") if (ends.astype(kind) == ends).all()), object)
        )
    kind = array.dtype.str[1:]
    if kind not in _TYPES or not array.size:
        return cast(list[Any], array.tolist())
    written = {"dtype": kind, "bdata": b64encode(array.tobytes()).decode("ascii")}
    return written | ({"shape": str(array.shape)[1:-1]} if array.ndim > 1 else {})


def figure_of(traces: Marks | list[Marks], layout: dict[str, object]) -> go.Figure:
    """A figure of these traces; what is empty in the layout is left out, as plotly does."""
    filled = {name: value for name, value in layout.items() if value != []}
    return Figure(traces if isinstance(traces, list) else [traces], filled)


def base_layout(
    theme: Theme, *, height: int, margin: Mapping[str, object] | None = None, **own: object
) -> dict[str, object]:
    """The layout shared by every figure: transparent background, fonts, margins, a readable hover box.

    A margin is 8 px where it is not given. ``own`` is the rest of the figure's layout. Plotly gets everything at once, since changing an axis of a finished
    figure takes 5 ms, and every selection of a head draws figures.
    """
    return {
        "template": _NO_TEMPLATE,
        "height": height,
        "font": {"family": FONT, "size": FONT_SIZE, "color": theme.text},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8} | dict(margin or {}),
        "hoverlabel": {
            "bgcolor": theme.background,
            "bordercolor": theme.quiet,
            "font": {"family": FONT, "size": FONT_SIZE, "color": theme.text},
            "align": "left",
        },
        "showlegend": False,
        "dragmode": False,
        **own,
    }
