"""Where does the difference between two sentences lie?"""

from ui.renderer import render

render("Patching")
