from ui.renderer import render

render("Verification")
