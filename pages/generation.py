"""The page “Generate”."""

from ui.renderer import render

render("Generate")
