"""Letters on cells: WCAG's own examples, and that they can be read on every colour of every scale in both themes."""

import numpy as np
import pytest

from attnviz.figures.ink import contrast, inks
from attnviz.figures.theme import THEMES
from attnviz.figures.thumbnails import colours_at


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
