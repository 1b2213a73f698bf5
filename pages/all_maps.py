"""Where do queries and keys lie in every head?"""

from ui.renderer import render

render("Maps")
