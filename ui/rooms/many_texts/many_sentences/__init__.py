"""Parts of the page "Collection"."""
