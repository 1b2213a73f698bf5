"""What if a head were off?"""

from ui.renderer import render

render("Heads off")
