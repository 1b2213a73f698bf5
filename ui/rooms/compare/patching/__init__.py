"""Parts of the page "Patching"."""
