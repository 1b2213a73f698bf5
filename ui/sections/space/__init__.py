"""Parts of the page "Query-key space"."""
