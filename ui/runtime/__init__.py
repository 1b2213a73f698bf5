"""Computation behind a screen: caches, jobs in worker processes, and waiting for their results."""
