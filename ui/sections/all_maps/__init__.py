"""Parts of the page "All maps"."""
