"""Parts of the page "Kinds of attention"."""
