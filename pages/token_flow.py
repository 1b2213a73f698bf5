"""Where does the attention of one head, or of several, go?"""

from ui.renderer import render

render("Several heads")
