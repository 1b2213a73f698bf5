from ui.renderer import render

render("Myths")
