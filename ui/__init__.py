"""What the screens share: the only package, beside app.py, attention.py and pages/, that knows Streamlit."""

import os

from ui.limits import THREADS

# GNU's OpenMP reads it when torch is imported, so that a page imports this package before. How often a thread that
# waits for another one looks before it sleeps: by default for so long that it keeps its core from a browser or another
# visitor. With one of two cores busy 512 tokens are read in 0.26 s like this, and in 1.05 s by default; on an idle
# machine both take 0.09 s, where threads that never look take 0.12 s.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

if THREADS:  # read by OpenMP and BLAS when torch and numpy load them
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[_name] = str(THREADS)
