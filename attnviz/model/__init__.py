"""From a name and a text to a Trace, and what needs both: verification, predictions, the anatomy of a layer."""
