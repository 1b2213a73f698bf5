"""The page “Glossary”."""

from ui.renderer import render

render("Glossary")
