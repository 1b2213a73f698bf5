from ui.renderer import render

render("Heads off")
