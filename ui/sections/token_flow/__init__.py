"""Parts of the page "Token flow"."""
