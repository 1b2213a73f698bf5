"""Parts of the first screen."""
