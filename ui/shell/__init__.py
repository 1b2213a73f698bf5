"""What every page has: the frame with its settings, the verdict, errors on the screen."""
