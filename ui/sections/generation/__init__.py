"""Parts of the page "Generation"."""
