"""Tensors in, tensors out: torch only, and nothing else of attnviz."""
