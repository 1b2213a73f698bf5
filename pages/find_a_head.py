"""The page “Find a head · All heads”."""

from ui.renderer import render

render("Find a head")
