"""The page “Cost · How it works”."""

from ui.renderer import render

render("Cost")
