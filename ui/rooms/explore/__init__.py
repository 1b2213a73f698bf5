"""Explore: where does each token look? The pages beside the stage."""
