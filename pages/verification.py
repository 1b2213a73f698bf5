"""The page “Verification”."""

from ui.renderer import render

render("Verification")
