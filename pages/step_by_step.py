from ui.renderer import render

render("Step by step")
