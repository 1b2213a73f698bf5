"""From a name and a text to a Trace, and functions of a model and a trace: verification, predictions, layer anatomy."""
