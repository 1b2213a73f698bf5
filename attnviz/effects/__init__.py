"""What changes the output: masks, heads switched off, other states, word order, scale, earlier attention; and what it is made of."""
