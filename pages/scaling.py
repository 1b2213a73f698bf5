from ui.renderer import render

render("Scaling")
