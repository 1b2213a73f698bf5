"""Parts of the page "Profiles"."""
