"""What would the model predict if it stopped after each layer?"""

from ui.renderer import render

render("Lens")
