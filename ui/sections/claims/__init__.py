"""Parts of "Myths"."""
