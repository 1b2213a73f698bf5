"""The page “Other maps · Explore”."""

from ui.renderer import render

render("Other maps")
