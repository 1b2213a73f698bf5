"""The page “Pictures and numbers · All heads”."""

from ui.renderer import render

render("Pictures and numbers")
