"""Parts of the page "Claims"."""
