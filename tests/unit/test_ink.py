"""Letters on cells: WCAG's own examples, and that they can be read on every colour of every scale in both themes."""

import numpy as np
import pytest

from attnviz.figures.cells import colours_at, contrast, inks
from attnviz.figures.theme import THEMES


def rgb(colour: str) -> np.ndarray:
    return np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)]], dtype=float)


def test_contrast_is_that_of_wcag():
    assert contrast(rgb("#000000"), rgb("#ffffff"))[0] == pytest.approx(21)
    assert contrast(rgb("#777777"), rgb("#ffffff"))[0] == pytest.approx(
        4.48, abs=0.005
    )  # the grey just too light for 4.5
    assert contrast(rgb("#0072b2"), rgb("#0072b2"))[0] == 1


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("signed", [False, True])
def test_letters_can_be_read_on_every_tone(theme, signed):
    fills = colours_at(np.linspace(0, 1, 101), theme, signed=signed)
    chosen = inks(fills, theme)
    assert set(chosen) == {THEMES[theme].text, THEMES[theme].background}
    contrasts = [
        contrast(rgb(ink), fill[None].astype(float))[0] for ink, fill in zip(chosen, fills, strict=True)
    ]
    assert min(contrasts) >= 3


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2, channel by channel."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", THEMES)
def test_letters_change_their_colour_at_the_grey_where_both_have_the_same_contrast(theme):
    """(a + 0.05) / (grey + 0.05) = (grey + 0.05) / (b + 0.05) where both are equally far."""
    palette = THEMES[theme]
    product = (luminance(palette.text) + 0.05) * (luminance(palette.background) + 0.05)
    greys = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    is_dark = [luminance(f"#{grey:02x}{grey:02x}{grey:02x}") + 0.05 < product**0.5 for grey in range(256)]
    light, dark = sorted((palette.text, palette.background), key=luminance, reverse=True)
    assert inks(greys, theme) == [light if dark_grey else dark for dark_grey in is_dark]
