"""Parts of "Other maps"."""
