from ui.renderer import render

render("Several heads")
