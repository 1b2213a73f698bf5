"""The rooms, a folder each: the parts of its pages, what a person chooses there, and what its jobs compute."""
