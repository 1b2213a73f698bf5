"""Why does one token attend to another?"""

from ui.renderer import render

render("Door experiment")
