"""Where does each token look?"""

from ui.renderer import render

render("Together")
