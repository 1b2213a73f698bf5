"""The page “Myths”."""

from ui.renderer import render

render("Myths")
