"""Parts of "Side by side"."""
