"""The first screen."""

from ui.renderer import render

render("Together")
