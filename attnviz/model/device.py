"""The torch device that a model runs on."""

import os

import torch

from attnviz.errors import ModelNotAvailableError


def find_device(name: str | None = None) -> torch.device:
    """The device of this name; see `load_model`.

    Raises:
        ModelNotAvailableError: this machine has no such device.
    """
    asked = name or os.environ.get("ATTNVIZ_DEVICE") or "auto"
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(1, device=asked)  # only here does torch raise an error if there is no such device
        return torch.device(asked)
    except (RuntimeError, AssertionError):
        there = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        raise ModelNotAvailableError(
            f"The device {asked!r} was asked for; this machine has {', '.join(there)}. Select one of those, or leave "
            "ATTNVIZ_DEVICE and device= out."
        ) from None
