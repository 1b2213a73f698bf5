from ui.renderer import render

render("Kinds of attention")
