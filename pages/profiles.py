from ui.renderer import render

render("Profiles")
