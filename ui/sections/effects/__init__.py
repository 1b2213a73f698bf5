"""Parts of "Heads off"."""
