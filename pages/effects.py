"""The page “Heads off · Cause”."""

from ui.renderer import render

render("Heads off")
