"""What every page has: the frame with its settings, the verdict, error messages."""
