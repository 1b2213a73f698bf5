"""What do the words mean?"""

from ui.renderer import render

render("Glossary")
