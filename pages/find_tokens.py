"""The page “Find tokens · Many texts”."""

from ui.renderer import render

render("Find tokens")
