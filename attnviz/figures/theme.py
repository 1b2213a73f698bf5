"""Every colour and font of attnviz, for the light and the dark theme, and text made safe for plotly.

One concept: the look of figures. A meaning has the same colour everywhere, and a shape or a place besides.
"""

import unicodedata
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, SupportsIndex

import numpy as np
from jaxtyping import Int
from plotly import graph_objects as go

from attnviz.records import Axis, Tokens

ThemeName = Literal["light", "dark"]
Colour = Literal["linear", "logarithmic"]

FONT = '"Source Sans", "Source Sans 3", "Source Sans Pro", system-ui, sans-serif'
TOKEN_FONT = '"Source Code", "Source Code VF", "Source Code Pro", ui-monospace, monospace'
FONT_SIZE = 13
SMALL_FONT_SIZE = 12
"""Smallest text in a figure, px; readable from the back of a classroom."""
LONGEST_LABEL = 14
"""Most characters of a label on an axis; longer labels would take the room of the cells."""
LONGEST_HOVER = 40
"""Most characters of a label in hover text; longer ones would not fit on a phone's screen."""


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

Marks = dict[str, Any]
"""What plotly calls a trace, with its ``type``."""

_NO_TEMPLATE = {"data": {"scatter": [{"type": "scatter"}]}}
"""As plotly writes an empty one; its default template adds 7 kB to every figure."""

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
    first, last = _to_oklab(start), _to_oklab(end)
    return [_from_oklab(first + share * (last - first)) for share in shares]


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


def literal(text: str) -> str:
    """Text escaped for plotly, which would interpret tags and entities, and `$...$` as LaTeX."""
    return escape(text, quote=False).replace("$", "&#36;")


def isolated(text: str) -> str:
    """Text in isolates, so that right-to-left text does not change the order of the text around it.

    Between FSI and PDI: Unicode Standard Annex 9, section 2.4.
    """
    runs_left = not text.isascii() and any(
        unicodedata.bidirectional(one) in ("R", "AL", "AN") for one in text
    )
    return f"\u2068{text}\u2069" if runs_left else text


def label_at(label: str, position: SupportsIndex) -> str:
    """A token or word with its position, "door·5", so that equal tokens have different labels."""
    return f"{isolated(label)}·{position}"


def labels_at(axis: Axis) -> list[str]:
    """The entries of an axis with the positions of their first tokens, "door·5"; not safe for plotly."""
    return [label_at(*one) for one in zip(axis.labels, axis.positions, strict=True)]


def token_labels(tokens: Tokens, positions: Int[np.ndarray, " token"]) -> list[str]:
    """Tokens with their positions, "door·5", so that equal tokens have different labels; safe for plotly."""
    return [label_at(literal(tokens.labels[position]), position) for position in positions]


def axis_labels(axis: Axis, most: int = LONGEST_LABEL) -> list[str]:
    """The entries of an axis, long ones shortened, each with the position of its first token; safe for plotly."""
    pairs = zip(axis.labels, axis.positions, strict=True)
    return [label_at(literal(shortened(label, most)), position) for label, position in pairs]


def hover_labels(axis: Axis) -> list[str]:
    """The same labels for hover text, where there is room for more."""
    return axis_labels(axis, LONGEST_HOVER)


def aliases(values: list[str], written: list[str]) -> dict[str, str]:
    """Tick labels of an axis by its values, where the two differ.

    Hover text has the values themselves as ``%{x:c}``: plotly replaces a plain ``%{x}`` by the tick label.
    """
    return {value: text for value, text in zip(values, written, strict=True) if value != text}


def shortened(text: str, most: int = LONGEST_LABEL) -> str:
    """Text of at most ``most`` characters: longer text loses its middle, "antidises…logy"."""
    return text if len(text) <= most else f"{text[: most - 5]}…{text[-4:]}"


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_text(number: float) -> str:
    """A number in powers of ten, "9.2 × 10⁻⁷"; numbers near 1, 0 and "not a number" without a power."""
    if not np.isfinite(number):
        return "not a number"
    if number == 0:
        return "0"
    if 0.01 <= abs(number) < 1000:
        return f"{number:.2g}" if abs(number) < 100 else f"{number:.0f}"
    digits, exponent = f"{number:.1e}".split("e")
    raised = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    return raised if digits == "1.0" else f"{digits}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}{raised}"


def share_text(weight: float) -> str:
    """A weight for a sentence: "47.5%"; "under 0.1%" for weights that would round to 0."""
    if 0 < weight < 0.0005:
        return "under 0.1%"
    return f"{100 * weight:.1f}%"


def percent_text(share: float) -> str:
    """A share in whole percent: "83%"."""
    return f"{100 * share:.0f}%"


def weight_text(number: float) -> str:
    """A number beside a bar, in a table or in hover text, to three digits: "0.475", "1.47", "4.5 × 10⁻⁴".

    `numberText` of ui/components/shared/labels.js writes the same.
    """
    size = abs(number)
    if number == 0 or not np.isfinite(number) or size < 0.001 or size >= 1e6:
        return power_text(number).replace("-", "−")
    return (f"{number:,.0f}" if size >= 999.5 else f"{number:#.3g}".rstrip(".")).replace("-", "−")


def cell_text(number: float) -> str:
    """A number in a cell that has room for five characters and a sign: "0.475", "0.012", "4.00", "−0.041"."""
    if abs(number) >= 0.9995:
        return weight_text(number)
    return f"{round(number, 3) + 0.0:.3f}".replace("-", "−")  # + 0.0 takes the sign from 0


HOVER_NUMBER = ".3g"
"""The form of `weight_text` where plotly writes the number."""


def number_text(number: float) -> str:
    """A number of any sign in three significant digits: "0.475", "−12.3", "1,234"; tiny ones in powers of ten."""
    if not np.isfinite(number) or number == 0:
        return power_text(number)
    rounded = float(f"{number:.3g}")
    if 0.0001 <= abs(rounded) < 1000:
        written = f"{rounded:#.3g}".rstrip(".")
    else:
        written = f"{number:,.0f}" if 1000 <= abs(rounded) < 1e6 else power_text(number)
    return written.replace("-", "−")


def axis_title(text: str, colour: str) -> dict[str, object]:
    """The title of an axis, small and close to the axis."""
    return {"text": text, "font": {"color": colour, "size": SMALL_FONT_SIZE}, "standoff": 4}


def outline(x: tuple[float, float], y: tuple[float, float], colour: str, *, width: int) -> dict[str, object]:
    """A frame around cells, from edge to edge."""
    return {
        "type": "rect",
        **{"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]},
        "line": {"color": colour, "width": width},
    }


def figure_of(traces: Marks | list[Marks], layout: dict[str, object]) -> go.Figure:
    """A figure that plotly takes as it is: checking each of its fields takes two thirds of the time of drawing it.

    The tests have every figure checked (`checked_figures` of tests/conftest.py); what is changed in one later is checked
    by plotly as usual.
    """
    filled = {name: value for name, value in layout.items() if value != []}  # plotly leaves the others out
    figure = go.Figure(traces, filled, _validate=False)
    for part in (figure, figure.layout, *figure.data):
        part._validate = True
    return figure


def base_layout(theme: Theme, *, height: int, **own: object) -> dict[str, object]:
    """The layout shared by every figure: transparent background, fonts, margins, a readable hover box.

    ``own`` is the rest of the figure's layout. Plotly gets everything at once, since changing an axis of a finished
    figure takes 5 ms, and every selection of a head draws figures.
    """
    return {
        "template": _NO_TEMPLATE,
        "height": height,
        "font": {"family": FONT, "size": FONT_SIZE, "color": theme.text},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
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
