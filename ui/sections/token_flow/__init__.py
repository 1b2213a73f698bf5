"""Parts of "Several heads"."""
