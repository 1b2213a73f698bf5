"""The page “Kinds of attention · How it works”."""

from ui.renderer import render

render("Kinds of attention")
