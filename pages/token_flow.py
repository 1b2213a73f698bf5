"""The page “Several heads · Explore”."""

from ui.renderer import render

render("Several heads")
