"""A checkpoint folder, read: its network on attnviz's attention, its language head or classifier, its tokenizer.

One concept: the checkpoint. Damaged or missing parts are refused by name; nothing is downloaded, and no code bundled
with a checkpoint is run.
"""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from logging import CRITICAL
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from attnviz.errors import ModelNotAvailableError, UnsupportedArchitectureError
from attnviz.model.capture import IMPLEMENTATION
from attnviz.model.catalogue import CONFIG_FILE
from attnviz.model.classifier import class_with_classifier, split_classifier
from attnviz.model.families import ADVICE, refuse_unsupported
from attnviz.model.language_head import class_with_head, split_head
from attnviz.model.own_attention import take_over
from attnviz.model.text_part import text_part

_VOCABULARY_FILES = ("tokenizer.json", "vocab*", "*.model")


@contextmanager
def quiet() -> Iterator[None]:
    """A context without transformers' progress bar and log: attnviz raises its own errors."""
    had_bar, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity(CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bar:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def load_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase:
    """The fast tokenizer of a folder.

    Raises:
        ModelNotAvailableError: there is no tokenizer, or it cannot be read.
        UnsupportedArchitectureError: it does not say which word a token belongs to.
    """
    if not any(any(folder.glob(pattern)) for pattern in _VOCABULARY_FILES):
        raise ModelNotAvailableError(  # transformers would create a tokenizer with an empty vocabulary
            f"The folder of {name} has no tokenizer. Save it beside the model with its save_pretrained."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001  (transformers raises whatever its readers raise)
        raise ModelNotAvailableError(
            f"The tokenizer of {name} cannot be read: {_said(error, name, folder)} "
            "Download the model again, or save its tokenizer beside it."
        ) from None
    if not tokenizer.is_fast:
        raise UnsupportedArchitectureError(
            f"The tokenizer of {name} has no tokenizer.json, which says which word each token belongs to. "
            "Save it once with transformers' fast tokenizer."
        )
    return tokenizer


def load_network(
    name: str, folder: Path, *, dtype: torch.dtype
) -> tuple[PreTrainedModel, PreTrainedModel | None, PreTrainedModel | None]:
    """The network in evaluation mode, its language head, and its classifier; each None unless the checkpoint has all of it.

    Raises:
        ModelNotAvailableError: damaged, incomplete, or not loadable without running its own code.
        UnsupportedArchitectureError: a family that attnviz cannot show.
    """
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        refuse_unsupported(name, config)
        with_head, with_classifier = class_with_head(config), class_with_classifier(config)
        # A randomly initialised head would be meaningless; Llama 4's class misnames its network.
        if with_head is not None:
            whole, info = _read(with_head, folder, dtype)
            if not any(_unfit(info)) and whole.base_model is not whole:
                return *split_head(whole), None
        elif with_classifier is not None:
            whole, info = _read(with_classifier, folder, dtype)
            if not any(_unfit(info, is_pooled=True)) and whole.base_model is not whole:
                network, classifier = split_classifier(whole)
                return network, None, classifier
        network, info = _read(AutoModel, folder, dtype)
    except (ModelNotAvailableError, UnsupportedArchitectureError):
        raise
    except pickle.UnpicklingError:
        raise ModelNotAvailableError(
            f"The weights of {name} are a pickle with code in it, which attnviz does not run, or a damaged "
            "one. Convert them to safetensors, or select a model that has them."
        ) from None
    except Exception as error:  # noqa: BLE001  (transformers raises whatever its readers raise)
        if "trust_remote_code" in str(error):
            raise ModelNotAvailableError(
                f"{name} can only be loaded by running its own code, which attnviz does not do. "
                "Select another model."
            ) from None
        if isinstance(error, KeyError) and error.args == (IMPLEMENTATION,):  # the family has its own list
            raise UnsupportedArchitectureError(
                f"{name} does not let its attention be replaced, so attnviz cannot show or check it. {ADVICE}"
            ) from None
        raise ModelNotAvailableError(
            f"{name} cannot be loaded: {_said(error, name, folder)} Download it again, or select another model."
        ) from None
    missing, mismatched = _unfit(info)
    if missing:
        raise ModelNotAvailableError(
            f"The checkpoint of {name} lacks {len(missing)} of the model's tensors, such as {missing[0]}; "
            "they would be random numbers. Download it again, or select another model."
        )
    if mismatched:
        raise ModelNotAvailableError(
            f"{len(mismatched)} tensors of {name}, such as {mismatched[0]}, have other sizes than its "
            f"{CONFIG_FILE} says. Download it again, or select another model."
        )
    return text_part(network), None, None


def copy_weights(network: PreTrainedModel) -> None:
    """Copies a network's weights out of their file, which safetensors maps into memory.

    Where the file is truncated later, reading from the mapping ends the process (SIGBUS).
    """
    for one in network.parameters():
        one.data = one.data.clone()


def _read(loader: Any, folder: Path, dtype: torch.dtype) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The model that an Auto class loads from the folder, and the tensors that are missing there."""
    made, info = loader.from_pretrained(
        folder,
        local_files_only=True,
        trust_remote_code=False,  # if left out, transformers asks on the terminal whether to run code
        attn_implementation=IMPLEMENTATION,
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # refused by name
    )
    take_over(made)
    return made.eval().requires_grad_(False), info  # attnviz does not train, and writes numbers in place


def _unfit(info: dict[str, Any], *, is_pooled: bool = False) -> tuple[list[str], list[str]]:
    """Tensors that are missing or of another size; the pooler's only where it is used, which no attention does."""
    missing, mismatched = info["missing_keys"], [key for key, *_ in info["mismatched_keys"]]
    return tuple(  # type: ignore[return-value]
        sorted(key for key in keys if is_pooled or "pooler" not in key) for keys in (missing, mismatched)
    )


def _said(error: Exception, name: str, folder: Path) -> str:
    """First line of a library's error, as a sentence, with the model's name in place of its folder."""
    line = str(error).strip().split("\n")[0].replace(str(folder), name).rstrip(" :") or type(error).__name__
    return line if line.endswith((".", "!", "?")) else f"{line}."
