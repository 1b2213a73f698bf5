"""What came before scaled dot-product attention?"""

from ui.renderer import render

render("History")
