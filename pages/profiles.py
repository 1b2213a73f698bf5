"""The page “Profiles · Many texts”."""

from ui.renderer import render

render("Profiles")
