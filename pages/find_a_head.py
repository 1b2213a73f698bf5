from ui.renderer import render

render("Find a head")
