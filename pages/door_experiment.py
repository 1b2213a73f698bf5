"""The page “Door experiment”."""

from ui.renderer import render

render("Door experiment")
