"""Parts of the page "Query-key map"."""
