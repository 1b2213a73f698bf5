"""The page “Scaling · How it works”."""

from ui.renderer import render

render("Scaling")
