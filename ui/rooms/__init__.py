"""The rooms, one folder each: the parts of a room's pages, its settings, and what its jobs compute."""
