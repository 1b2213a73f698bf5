"""What a visitor can select: the selection, its link, and the widgets that change it."""
