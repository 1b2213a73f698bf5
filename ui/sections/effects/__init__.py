"""Parts of the page "Effects"."""
