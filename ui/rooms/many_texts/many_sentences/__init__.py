"""Parts of "Joint map"."""
