"""How does the model know the order of the words?"""

from ui.renderer import render

render("Positions")
