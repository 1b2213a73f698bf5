"""Computation behind a screen: what is remembered, what runs in processes of its own, and the waiting for it."""
