from ui.renderer import render

render("Maps")
