from ui.renderer import render

render("Pictures and numbers")
