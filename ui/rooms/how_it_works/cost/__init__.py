"""Parts of the page "Cost"."""
