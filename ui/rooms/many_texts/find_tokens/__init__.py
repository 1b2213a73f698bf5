"""Parts of the page "Find tokens"."""
