"""The steps of attention, on the page "Step by step": one function each."""
