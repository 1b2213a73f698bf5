"""The memory that tracing and verifying a text takes, estimated before anything is computed, and what the machine has left."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.errors import OutOfMemoryError
from attnviz.maths.blocks import QUERY_BLOCK
from attnviz.model.configuration import call_count, text_config
from attnviz.model.storage import IN_MEMORY
from attnviz.records import LONG

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_NUMBER = 4
_STATES, _INNER, _HEADS = 4, 3, 4
"""Arrays that are there at once: of hidden states; of a feed-forward part; and of queries, keys, values and outputs of all heads."""
_MASKS, _FLOAT_MASKS = 3, 3
"""Matrices [query, key] while a mask is made: of True and False, and of the numbers that eager attention adds."""
_BLOCKS = 6
"""Blocks [head, row, key] that a comparison holds: scores and weights of either side, and what they differ by."""
_CGROUPS = (  # limit and use of a container's memory, and what of it the system takes back when it is short: cgroup v2, and v1
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
_MEMINFO = Path("/proc/meminfo")


def trace_bytes(network: "PreTrainedModel", n_token: int) -> int:
    """Most bytes that tracing so many tokens takes beside the loaded model."""
    config = text_config(network.config)
    n_head, d_model = int(config.num_attention_heads), int(config.hidden_size)
    d_head = int(getattr(config, "head_dim", None) or d_model // n_head)
    n_kv_head = int(getattr(config, "num_key_value_heads", None) or n_head)
    inner = next(
        (
            int(size)
            for name in ("intermediate_size", "ffn_dim", "d_ff", "n_inner", "encoder_ffn_dim")
            if (size := getattr(config, name, None))
        ),
        4 * d_model,
    )
    kept = call_count(network.config, "encoder") * (n_head + 2 * n_kv_head) * d_head * _NUMBER * n_token
    states = _STATES * d_model * _NUMBER * n_token
    attention = _HEADS * n_head * d_head * _NUMBER * n_token + n_head * QUERY_BLOCK * n_token * _NUMBER
    forward = _INNER * inner * _NUMBER * n_token
    masks = 0 if is_unmasked(network) else n_token**2
    biases = n_head * n_token**2 * _NUMBER if has_score_bias(network) else 0
    return (
        min(kept, IN_MEMORY)
        + biases
        + masks
        + states
        + max(attention, forward, (_MASKS - 1) * masks - states)
    )


def has_score_bias(network: "PreTrainedModel") -> bool:
    """Whether a number for each head, query and key is added to the scores, by their distance, as in T5."""
    return getattr(text_config(network.config), "relative_attention_num_buckets", None) is not None


def is_unmasked(network: "PreTrainedModel") -> bool:
    """Whether every token sees every token, in all layers."""
    config = text_config(network.config)
    is_causal = any(getattr(module, "is_causal", False) for module in network.modules())
    windows = ("sliding_window", "local_attention")
    return not is_causal and not any(getattr(config, name, None) for name in windows)


def verify_bytes(network: "PreTrainedModel", n_token: int) -> int:
    """Most bytes that verifying the trace of so many tokens takes beside the loaded model and the trace."""
    n_head = int(text_config(network.config).num_attention_heads)
    blocks = _BLOCKS * n_head * QUERY_BLOCK * n_token * _NUMBER
    return trace_bytes(network, n_token) + blocks + _FLOAT_MASKS * _NUMBER * n_token**2


def refuse_beyond_memory(network: "PreTrainedModel", n_token: int, *, verified: bool = False) -> None:
    """Does nothing for a text that fits, a short one, or a model whose family does not say its sizes.

    Raises:
        OutOfMemoryError: tracing it, or verifying its trace, takes more memory than is free.
    """
    free = free_bytes()
    if n_token <= LONG or free is None or network.device.type != "cpu":
        return
    try:
        needed = verify_bytes(network, n_token) if verified else trace_bytes(network, n_token)
    except (AttributeError, TypeError):  # no such number, or one for each layer
        return
    if needed > free:
        what = "Verifying" if verified else "Tracing"
        raise OutOfMemoryError(
            f"{what} {n_token:,} tokens takes about {needed / 1e9:.2g} GB of memory, and {free / 1e9:.2g} GB are free. Shorten the text, "
            "or select a smaller model."
        )


def free_bytes() -> int | None:
    """Bytes that this process can still take, by the system and a container's limit; None where neither tells."""
    free = None
    with suppress(OSError, StopIteration, ValueError):
        line = next(line for line in _MEMINFO.read_text().splitlines() if line.startswith("MemAvailable:"))
        free = 1024 * int(line.split()[1])
    for folder, limit, used, cached in _CGROUPS:
        with suppress(OSError, ValueError):  # no container, or "max" for no limit
            left = int(Path(folder, limit).read_text()) - int(Path(folder, used).read_text())
            left = max(0, left + _statistic(Path(folder, "memory.stat"), cached))
            free = left if free is None else min(free, left)
    return free


def _statistic(file: Path, name: str) -> int:
    """A number of a container's memory; 0 where it is not told."""
    with suppress(OSError):
        lines = map(str.split, file.read_text().splitlines())
        return next((int(line[1]) for line in lines if line[0] == name), 0)
    return 0
