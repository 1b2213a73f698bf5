"""What changes the output: masks, heads switched off, states of another text, word order, scale, earlier kinds of attention; and its tokens."""
