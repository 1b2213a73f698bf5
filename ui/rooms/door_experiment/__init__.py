"""Parts of the page "Door experiment"."""
