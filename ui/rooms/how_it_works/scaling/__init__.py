"""Parts of the page "Scaling"."""
