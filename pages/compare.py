"""The page “Side by side · Compare”."""

from ui.renderer import render

render("Side by side")
