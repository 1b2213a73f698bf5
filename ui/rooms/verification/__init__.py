"""Parts of the page "Verification"."""
