"""Parts of the page "All heads"."""
