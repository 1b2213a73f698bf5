"""The page “Patching · Compare”."""

from ui.renderer import render

render("Patching")
