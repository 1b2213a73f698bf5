"""Parts of the page "Positions"."""
