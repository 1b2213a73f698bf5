from ui.renderer import render

render("For teachers")
