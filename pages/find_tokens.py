from ui.renderer import render

render("Find tokens")
