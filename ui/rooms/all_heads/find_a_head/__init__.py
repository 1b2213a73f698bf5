"""Parts of the page "Find a head"."""
