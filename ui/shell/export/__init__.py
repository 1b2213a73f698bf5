"""Taking it with you: pictures, numbers, Python, bundles."""
