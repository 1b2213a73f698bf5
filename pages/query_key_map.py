from ui.renderer import render

render("Other maps")
