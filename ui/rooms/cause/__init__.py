"""Cause: what would change without it? Effects, Lens, Inputs, and what experiments share."""
