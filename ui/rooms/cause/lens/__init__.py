"""Parts of the page "Lens"."""
