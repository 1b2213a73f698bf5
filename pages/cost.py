from ui.renderer import render

render("Cost")
