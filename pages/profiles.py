"""What does each head do over many texts?"""

from ui.renderer import render

render("Profiles")
