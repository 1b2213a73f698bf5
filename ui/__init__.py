"""What the screens share: the only package, beside app.py and pages/, that knows Streamlit."""

import os

# OpenMP reads it when torch is imported, so that a page imports this package before. A thread that waits for another
# one sleeps instead of keeping its core from it: by default 13 tokens take 50 to 600 ms where the browser or another
# visitor keeps a core busy, and like this 17 ms.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
