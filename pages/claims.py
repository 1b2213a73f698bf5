"""Which common claims about attention hold for this sentence?"""

from ui.renderer import render

render("Myths")
