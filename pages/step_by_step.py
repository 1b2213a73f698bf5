"""The page “Step by step · How it works”."""

from ui.renderer import render

render("Step by step")
