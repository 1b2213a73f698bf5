"""Export: pictures, numbers, Python, bundles."""
