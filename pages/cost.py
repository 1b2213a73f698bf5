"""What does attention cost as a text grows?"""

from ui.renderer import render

render("Cost")
