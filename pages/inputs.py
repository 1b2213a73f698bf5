from ui.renderer import render

render("Inputs")
