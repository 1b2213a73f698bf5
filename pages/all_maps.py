"""The page “Maps · All heads”."""

from ui.renderer import render

render("Maps")
