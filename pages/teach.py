"""The page “For teachers”."""

from ui.renderer import render

render("For teachers")
