"""Settings of a worker process and of the one that workers are forked from, imported there before any library."""

import os
import signal

_THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KINETO_LOG_LEVEL": "99"}
"""For the libraries in a process: one thread, since there is a process for each core already, and sums stay the same.
Where a method uses two threads all the same, a waiting one sleeps instead of keeping the other from its core. torch's
profiler does not log its start and end."""

os.environ.update(_THREADS)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the server, which then ends this process
if hasattr(os, "nice"):
    os.nice(5)  # visitors' pages come first
