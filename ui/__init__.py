"""What the screens share: the only package, beside app.py, attention.py and pages/, that knows Streamlit."""

import os

from ui.limits import THREADS

# OpenMP and BLAS read these when torch and numpy are imported, so that a page imports this package before. A second thread gains
# little and waits for its core: with all cores busy, as they are with a browser on the same machine or a few visitors, 11 tokens
# are read in 35 ms with one thread and in 115 to 194 ms with two, 507 in 0.6 to 0.9 and 1.1 to 1.5 s, for half of the processor's
# time. On an idle machine 512 tokens take 0.2 s with one thread and 0.09 s with two.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = str(THREADS)
# For who sets more: how often a thread that waits for another one looks before it sleeps; by default for so long that it keeps
# its core from others.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
