"""The cost of attention, counted and measured, and attention tile by tile."""
