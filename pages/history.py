from ui.renderer import render

render("History")
