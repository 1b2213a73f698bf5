"""What attention costs, counted and measured, and attention tile by tile."""
