"""Measurements against the budgets: `make bench`. Ratios are taken within one run, on one machine."""
