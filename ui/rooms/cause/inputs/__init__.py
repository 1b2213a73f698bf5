"""Parts of the page "Inputs"."""
