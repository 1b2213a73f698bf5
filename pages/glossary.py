from ui.renderer import render

render("Glossary")
