"""The page “Long text · All heads”."""

from ui.renderer import render

render("Long text")
