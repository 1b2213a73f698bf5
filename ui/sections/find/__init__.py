"""Parts of the page "Find the head"."""
