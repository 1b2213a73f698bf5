"""Tensors or arrays in, tensors or arrays out: no model, no text, and nothing else of attnviz."""
