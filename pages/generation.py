"""What does a decoder read while it writes?"""

from ui.renderer import render

render("Generate")
