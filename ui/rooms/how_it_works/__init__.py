"""How it works: how a sentence becomes a matrix, and the chapters after it."""
