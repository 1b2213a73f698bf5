"""The parts of a page that is longer than a screen, a folder for each page."""
