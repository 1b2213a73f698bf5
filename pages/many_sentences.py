from ui.renderer import render

render("Joint map")
