"""What changes the answer: masks, the order of the words, the scale of the scores, earlier kinds of attention."""
