from ui.renderer import render

render("Generate")
