from ui.renderer import render

render("Lens")
