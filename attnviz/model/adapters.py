"""Adapters: small weights that change another model's numbers, as files beside it or as tensors within its own.

transformers leaves such tensors out.

Source: the prefixes of the methods in PEFT's documentation (https://huggingface.co/docs/peft), and the names of AdapterHub's
`adapters`, of loralib, of LyCORIS and of P-tuning v2.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from attnviz.model.catalogue import CONFIG_FILE

_LORA = ("lora", "lora[._-]*", "*[._-]lora", "*[._-]lora[._-]*")
_FILES = (
    *("adapter_config.json", "adapter_model*.safetensors", "adapter_model*.bin", "pytorch_adapter.bin"),
    *(f"{name}.{suffix}" for name in _LORA for suffix in ("safetensors", "bin", "pt", "pth")),
)
FILES = (*_FILES, *(f"*/{file}" for file in _FILES))
"""Patterns of an adapter's files, in a checkpoint's folder and in folders within it: those of PEFT, of AdapterHub and of scripts
that save only LoRA."""

_PREFIXES = (
    *("lora_", "ia3_", "hada_", "loha_", "lokr_", "glora_", "oft_", "boft_", "vera_", "vblora_", "randlora_", "gralora_"),
    *("delora_", "xlora_", "dora_", "hra_", "c3a_", "shira_", "miss_", "bone_", "road_", "poly_", "fourierft_", "waveft_"),
    *("osf_", "ln_tuning_", "trainable_tokens_", "adaption_", "adapter_", "soft_prompt", "prefix_t"),
)  # fmt: skip
_STEPS = {
    *("lora", "loras", "adapter", "adapters", "hada", "lokr", "oft", "boft", "ia3", "vera", "dora"),
    *("base_layer", "original_module", "modules_to_save"),  # of a model that PEFT wraps
    *("prompt_embeddings", "prompt_encoder", "prompt_tokens", "prefix_encoder", "prefix_embeddings"),
}
_SUFFIXES = ("_lora", "_loras", "_adapter", "_adapters")


def is_tensor(name: str) -> bool:
    """Whether a step of a tensor's name is one that adapters have: ``query.lora_A.default.weight``, ``prompt_embeddings``."""
    return any(map(_is_step, re.split(r"[.:/]", name.lower())))


def _is_step(step: str) -> bool:
    return step in _STEPS or step.startswith(_PREFIXES) or step.endswith(_SUFFIXES)


def folders(paths: Iterable[str]) -> tuple[str, ...]:
    """The folders within a checkpoint's that hold an adapter.

    Args:
        paths: of the files, relative to the checkpoint's folder.
    """
    return tuple(
        sorted(
            {
                path.rpartition("/")[0]
                for path in paths
                if "/" in path and any(fnmatchcase(path, pattern) for pattern in FILES)
            }
        )
    )


def refusal(name: str, tensors: list[str]) -> str:
    """Why a model is refused whose own files hold an adapter's tensors."""
    return (
        f"The weights of {name} hold {len(tensors)} tensors of an adapter, such as {tensors[0]}, which change the numbers of the "
        f"network that {CONFIG_FILE} describes and which transformers leaves out. Merge the adapter into the weights (PEFT's "
        "merge_and_unload) and save them with save_pretrained, or select another model."
    )
