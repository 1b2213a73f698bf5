"""Parts of "Pictures and numbers"."""
