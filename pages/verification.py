"""Are these numbers the model's own?"""

from ui.renderer import render

render("Verification")
