"""What changes an answer, and what the answer is made of: masks, heads, states, tokens, word order, scale."""
