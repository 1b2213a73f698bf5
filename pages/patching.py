from ui.renderer import render

render("Patching")
