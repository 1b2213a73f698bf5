"""The page “Positions · How it works”."""

from ui.renderer import render

render("Positions")
