"""A view of a trace in a file: written, read without trust, compared with the model."""
