"""What changes with another sentence, head, layer or model?"""

from ui.renderer import render

render("Side by side")
