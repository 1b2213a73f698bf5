"""What changes the output: masks, word order, the scale of the scores, earlier kinds of attention."""
