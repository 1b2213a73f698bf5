"""What if a token could see fewer others?"""

from ui.renderer import render

render("Kinds of attention")
