from ui.renderer import render

render("Side by side")
