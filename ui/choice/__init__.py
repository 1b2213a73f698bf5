"""What a person can choose: the selection, its link, and the widgets that change it."""
