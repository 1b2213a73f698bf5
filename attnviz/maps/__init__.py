"""Vectors to points: spaces, layouts, the attention map, reliability, many texts."""
