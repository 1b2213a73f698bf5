"""The page “Lens · Cause”."""

from ui.renderer import render

render("Lens")
