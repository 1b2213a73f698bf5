"""The page “History · How it works”."""

from ui.renderer import render

render("History")
