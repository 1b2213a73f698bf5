"""Functions of tensors or arrays, without models, texts or other parts of attnviz."""
