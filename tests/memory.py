"""How much memory a trace keeps alive: what its tests and the benchmarks measure."""

import numpy as np
import torch

from attnviz.model.trace import Trace


def kept_bytes(trace: Trace) -> int:
    """Bytes of the buffers behind a trace's arrays: each buffer once, and whole where only a part is used."""
    return sum(_buffers(trace).values())


def _buffers(trace: Trace) -> dict[int, int]:
    """Address of each buffer to its size in bytes."""
    calls = [call for calls in trace.layers.values() for call in calls]
    arrays = [getattr(call, name) for call in calls for name in ("query", "key", "value", "allowed", "bias")]
    buffers = {}
    for array in [*arrays, trace.last_hidden_state]:
        if array is not None:
            while isinstance(array.base, np.ndarray):
                array = array.base
            if isinstance(array.base, torch.Tensor):
                storage = array.base.untyped_storage()
                buffers[storage.data_ptr()] = storage.nbytes()
            else:
                buffers[array.__array_interface__["data"][0]] = array.nbytes
    return buffers
