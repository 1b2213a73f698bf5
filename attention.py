"""The page “Explore”."""

from ui.renderer import render

render("Together")
