"""The page “Joint map · Many texts”."""

from ui.renderer import render

render("Joint map")
