from ui.renderer import render

render("Door experiment")
