"""A view of a trace in a file: writing it, reading untrusted files, comparing them with the model."""
