from ui.renderer import render

render("Positions")
