"""The page “Inputs · Cause”."""

from ui.renderer import render

render("Inputs")
