"""Parts of "Maps"."""
