"""Cause: what would change without a head or token? Effects, Lens, Inputs, and what experiments share."""
