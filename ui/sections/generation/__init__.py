"""Parts of "Generate"."""
