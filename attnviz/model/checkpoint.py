"""Reading a checkpoint folder: its network on attnviz's attention, its language head or classifier, its tokenizer.

Damaged or missing parts are refused by name; nothing is downloaded, and no code bundled with a checkpoint is run.
"""

import pickle
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from logging import CRITICAL
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_TEXT_ENCODING_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForTextEncoding,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers import __version__ as transformers_version
from transformers.modeling_utils import load_state_dict
from transformers.utils import logging

from attnviz.errors import (
    AttnvizError,
    ModelNotAvailableError,
    UnsupportedArchitectureError,
    cause,
    lacks_memory,
)
from attnviz.model.agreement import Checkpoint, compare
from attnviz.model.capture import IMPLEMENTATION
from attnviz.model.catalogue import CONFIG_FILE, weights_files
from attnviz.model.configuration import text_config
from attnviz.model.families import ADVICE, refuse_unsupported
from attnviz.model.folder import refuse_settings
from attnviz.model.own_attention import take_over
from attnviz.model.parts import (
    class_with_classifier,
    class_with_head,
    split_classifier,
    split_head,
    text_part,
)
from attnviz.model.weights import Account, account_for, read_tensors, refuse_other_weights

_SENTENCEPIECE_FILES = ("*.spm", "*spiece.model", "*sentencepiece*.model", "tokenizer.model")
_TOKENIZER_PACKAGES = (
    "sentencepiece",
    "sacremoses",
    "tiktoken",
    "fugashi",
    "rhoknp",
    "sudachipy",
    "rjieba",
    "jieba",
)
"""Packages that tokenizer classes of transformers 5.23.0 need, beside Python's own and attnviz's."""
_VOCABULARY_FILES = ("tokenizer.json", "vocab*", "*.model")
_UNKNOWN_FAMILY = re.compile(r"model type `([^`]*)` but Transformers does not recognize")
_NO_FAMILY = "Should have a `model_type` key"
"""What transformers 5.23.0 says of a configuration without a family, or with one that it does not know."""
_CODE = re.compile(r"GLOBAL (\S+)")
"""The code that a pickle would run, in the message of torch 2.13.0's ``torch.load(weights_only=True)``."""

_STATE_DICTS = ("state_dict", "model_state_dict", "model")
"""Keys of a state dict saved beside an optimizer's, in order: PyTorch Lightning 2, PyTorch's tutorials, fairseq."""
_PREFIXES = ("module.", "_orig_mod.")
"""Prefixes of ``DataParallel`` and ``DistributedDataParallel``, and of ``torch.compile``, in torch 2.13.0."""


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


def load_tokenizer(name: str, folder: Path, *, repair: str) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder, as its own class reads it.

    Args:
        repair: what to do where it is damaged, as `attnviz.model.catalogue.Location.repair`.

    Raises:
        ModelNotAvailableError: there is no tokenizer, or it cannot be read here, for example because its class needs a package
            that is missing.
    """
    if not any(any(folder.glob(pattern)) for pattern in _VOCABULARY_FILES):
        raise ModelNotAvailableError(  # transformers would create a tokenizer with an empty vocabulary
            f"The folder of {name} has no tokenizer. Save it beside the model with its save_pretrained."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001  (transformers raises whatever its readers raise)
        if package := _missing_package(error, folder):
            raise ModelNotAvailableError(
                f"The tokenizer of {name} is read with the Python package {package}, which is not installed here. Install it "
                f"where attnviz runs (pip install {package}), or select another model."
            ) from None
        raise ModelNotAvailableError(
            f"The tokenizer of {name} cannot be read: {_cause(error, name, folder)} {repair}, or select another model."
        ) from None
    return tokenizer


def _missing_package(error: Exception, folder: Path) -> str | None:
    """The missing package that would read a tokenizer's files; attnviz itself needs none of these packages.

    For a SentencePiece file whose package is missing, transformers 5.23.0 names tiktoken.
    """
    if (
        any(any(folder.glob(sentencepiece_file)) for sentencepiece_file in _SENTENCEPIECE_FILES)
        and find_spec("sentencepiece") is None
    ):
        return "sentencepiece"
    if not isinstance(error, ImportError):
        return None
    return next(
        (
            tokenizer_package
            for tokenizer_package in _TOKENIZER_PACKAGES
            if tokenizer_package in str(error).lower()
        ),
        None,
    )


def load_network(
    name: str, folder: Path, *, dtype: torch.dtype, repair: str, quantization: str | None = None
) -> tuple[PreTrainedModel, PreTrainedModel | None, PreTrainedModel | None, Account]:
    """The network in evaluation mode, its language head, its classifier, and what became of the file's tensors.

    Head and classifier are None unless the checkpoint has all of their tensors.

    Args:
        repair: what to do where files are damaged, as `attnviz.model.catalogue.Location.repair`.
        quantization: of the GGUF file that the folder was made from; None where there was none.

    Raises:
        ModelNotAvailableError: damaged, incomplete, quantized, not loadable without running its own code, with tensors
            that the network has no place for, or with a configuration that contradicts itself.
        UnsupportedArchitectureError: a family that attnviz cannot show.
        MemoryError, RuntimeError: as `attnviz.errors.lacks_memory`.
    """
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        refuse_unsupported(name, config)
        refuse_settings(name, config.to_dict())
        compare(Checkpoint(name=name, folder=folder))
        tensors = unwrapped(folder)

        def of_file() -> Iterable[tuple[str, Tensor]]:
            return read_tensors(folder) if tensors is None else tensors.items()

        def account(whole: PreTrainedModel) -> Account:
            refuse_other_weights(name, whole, of_file(), config)
            return account_for(name, whole, of_file(), config, quantization)

        with_head, with_classifier = class_with_head(config), class_with_classifier(config)
        # A randomly initialised head would be meaningless; Llama 4's class misnames its network.
        if with_head is not None:
            whole, info = _read(with_head, folder, dtype, config, tensors)
            if not any(_unfit(info)) and whole.base_model is not whole:
                accounted = account(whole)
                return *split_head(whole), None, accounted
        elif with_classifier is not None:
            whole, info = _read(with_classifier, folder, dtype, config, tensors)
            if not any(_unfit(info, is_pooled=True)) and whole.base_model is not whole:
                accounted = account(whole)
                network, classifier = split_classifier(whole)
                return network, None, classifier, accounted
        loader = _network_class(config, of_file())
        network, info = _read(loader, folder, dtype, config, tensors)
        if loader is AutoModelForTextEncoding:
            network.config.is_encoder_decoder = False  # it has no decoder that would read anything
        missing, mismatched = _unfit(info)
        if not missing and not mismatched:
            return text_part(network), None, None, account(network)
        refuse_other_weights(name, network, of_file(), config)  # says more than that tensors are missing
    except Exception as error:
        if isinstance(error, AttnvizError) or lacks_memory(error):
            raise
        if isinstance(error, pickle.UnpicklingError | EOFError):  # torch's message would have the code run
            code = _CODE.search(str(error))
            reason = f"with code in it ({code[1]}), which attnviz does not run" if code else "that is damaged"
            raise ModelNotAvailableError(
                f"The weights of {name} are a pickle {reason}. "
                + ("Save its state_dict alone, as safetensors" if code else repair)
                + ", or select another model."
            ) from None
        if "trust_remote_code" in str(error):
            raise ModelNotAvailableError(
                f"{name} can only be loaded by running its own code, which attnviz does not do. "
                "Select another model."
            ) from None
        if isinstance(error, ImportError):
            raise UnsupportedArchitectureError(
                f"{name} cannot be loaded: {_cause(error, name, folder)} Install it where attnviz runs, or select another model."
            ) from None
        if family := _UNKNOWN_FAMILY.search(str(error)):
            raise UnsupportedArchitectureError(
                f"{name} is of the family {family[1]}, which transformers {transformers_version} does not know. {ADVICE}"
            ) from None
        if _NO_FAMILY in str(error):
            raise ModelNotAvailableError(
                f"{CONFIG_FILE} of {name} names no family (model_type), as a configuration of transformers does. Give a folder "
                "that transformers' save_pretrained wrote."
            ) from None
        if isinstance(error, KeyError) and error.args == (IMPLEMENTATION,):  # the family has its own list
            raise UnsupportedArchitectureError(
                f"{name} does not let its attention be replaced, so attnviz cannot show or check it. {ADVICE}"
            ) from None
        raise ModelNotAvailableError(
            f"{name} cannot be loaded: {_cause(error, name, folder)} {repair}, or select another model."
        ) from None
    if part := _part(name, network, missing, [tensor for tensor, _ in of_file()]):
        raise ModelNotAvailableError(part)
    if missing:
        raise ModelNotAvailableError(
            f"The checkpoint of {name} lacks {len(missing)} of the model's tensors, such as {missing[0]}; "
            f"they would be random numbers. {repair}, or select another model."
        )
    raise ModelNotAvailableError(
        f"{len(mismatched)} tensors of {name}, such as {mismatched[0]}, have other sizes than its "
        f"{CONFIG_FILE} says. {repair}, or select another model."
    )


def unwrapped(folder: Path) -> dict[str, Tensor] | None:
    """The tensors of a checkpoint by their names in the network; None where its files already have these names.

    A training script wraps them: in a dict beside other things, or with a prefix on every name. transformers finds no tensors in
    such files.

    Raises:
        Exception: whatever torch and safetensors raise for a damaged file, or for a pickle with code.
    """
    files = weights_files(folder)
    if all(file.suffix == ".safetensors" for file in files) and not _prefix(_names(files)):
        return None
    tensors: dict[str, Any] = {}
    is_wrapped = False
    for file in files:
        given: Any = load_state_dict(file)
        if not isinstance(given, Mapping):
            return None
        held: Mapping[str, Any] = next(
            (given[key] for key in _STATE_DICTS if _is_state_dict(given.get(key))), given
        )
        kept = {name: value for name, value in held.items() if isinstance(value, Tensor)}
        is_wrapped |= held is not given or 0 < len(kept) < len(held)
        tensors |= kept
    while prefix := _prefix(tensors):
        is_wrapped = True
        tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors if is_wrapped else None


def _is_state_dict(given: Any) -> bool:
    return isinstance(given, Mapping) and any(isinstance(value, Tensor) for value in given.values())


def _names(files: tuple[Path, ...]) -> list[str]:
    names: list[str] = []
    for file in files:
        with safe_open(file, framework="pt") as opened:
            names += opened.keys()
    return names


def _prefix(names: Any) -> str:
    """The wrapper's prefix that all names have; empty for none."""
    return next(
        (prefix for prefix in _PREFIXES if names and all(name.startswith(prefix) for name in names)), ""
    )


def _network_class(config: PreTrainedConfig, tensors: Iterable[tuple[str, Tensor]]) -> Any:
    """The Auto class of a network without a head; that of an encoder alone, such as T5EncoderModel, if the files hold no decoder."""
    family = type(config)
    is_half_of_family = (
        text_config(config) is config
        and family in MODEL_FOR_TEXT_ENCODING_MAPPING
        and MODEL_FOR_TEXT_ENCODING_MAPPING[family] is not MODEL_MAPPING[family]
    )
    if is_half_of_family and not any("decoder." in name for name, _ in tensors):
        return AutoModelForTextEncoding
    return AutoModel


def _part(name: str, network: PreTrainedModel, missing: list[str], names: list[str]) -> str | None:
    """The refusal of a checkpoint that is only a part of a model, such as a decoder; None where no whole part is missing."""
    whole, own = type(network).__name__, {key for key, _ in network.named_parameters() if "pooler" not in key}
    own -= _computed(network)
    parts = {tensor.split(".")[0] for tensor in missing}
    absent = sorted(
        part for part in parts if not any(key.split(".")[0] == part and key not in missing for key in own)
    )
    if not absent or not names:
        return None
    named = ", ".join(network.config.architectures or ())
    told = f" ({CONFIG_FILE} names {named})" if named and named != whole else ""
    if not any(key.split(".")[0] not in absent for key in own):
        return (
            f"The checkpoint of {name}{told} has none of the tensors of {whole}, but others, such as {sorted(names)[0]}: it is a part "
            f"of such a model, or saved under other names. Save the whole {whole} with save_pretrained, or select another model."
        )
    return (
        f"The checkpoint of {name}{told} is only a part of {whole}: it has no {' and no '.join(absent)} ({len(missing)} tensors). Save "
        f"the whole {whole} with save_pretrained, or select another model."
    )


def copy_weights(network: PreTrainedModel) -> None:
    """Copies a network's weights out of their file, which safetensors maps into memory.

    If the file is truncated later, reading from the mapping ends the process (SIGBUS).
    """
    for parameter in network.parameters():
        parameter.data = parameter.data.clone()


def refuse_not_finite(name: str, network: PreTrainedModel, *, repair: str) -> None:
    """Does nothing for a network whose parameters are finite numbers.

    Raises:
        ModelNotAvailableError: a parameter holds NaN or infinity, which would reach every number that is shown.
    """
    for tensor, parameter in network.named_parameters():
        if parameter.numel() and not all(map(torch.isfinite, parameter.detach().aminmax())):
            n_wrong = int((~parameter.isfinite()).sum())
            raise ModelNotAvailableError(
                f"{tensor} of {name} holds NaN or infinity ({n_wrong:,} of its {parameter.numel():,} numbers, in "
                f"{str(parameter.dtype).removeprefix('torch.')}), which would reach every number shown. {repair}, or select "
                "another model."
            )


def _read(
    loader: Any, folder: Path, dtype: torch.dtype, config: PreTrainedConfig, tensors: dict[str, Tensor] | None
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The model that an Auto class loads from the folder, and the tensors that are missing there."""
    given: dict[str, Any] = {}
    if tensors is not None:  # an Auto class of transformers 5.23.0 takes no tensors without a folder
        loader = loader._model_mapping[type(config)]
        given = {"config": config, "state_dict": dict(tensors)}
    made, info = loader.from_pretrained(
        folder if tensors is None else None,
        local_files_only=True,
        trust_remote_code=False,  # if left out, transformers asks on the terminal whether to run code
        attn_implementation=IMPLEMENTATION,
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # refused by name
        **given,
    )
    take_over(made)
    if info["missing_keys"]:
        info["missing_keys"] -= _computed(made)
    return made.eval().requires_grad_(False), info  # attnviz does not train, and writes numbers in place


def _computed(made: PreTrainedModel) -> set[str]:
    """Tensors that a class computes: sines and cosines of positions, which Marian's save_pretrained leaves out.

    They are the embeddings that are frozen as they are made; loading thaws them.
    """
    with torch.device("meta"):
        fresh = type(made)(made.config)
    return {
        f"{path}.weight"
        for path, module in fresh.named_modules()
        if isinstance(module, nn.Embedding) and not module.weight.requires_grad
    }


def _unfit(info: dict[str, Any], *, is_pooled: bool = False) -> tuple[list[str], list[str]]:
    """Tensors that are missing or of another size; the pooler's only where it is used, which no attention does."""
    missing, mismatched = info["missing_keys"], [key for key, *_ in info["mismatched_keys"]]
    return tuple(  # type: ignore[return-value]
        sorted(key for key in keys if is_pooled or "pooler" not in key) for keys in (missing, mismatched)
    )


def _cause(error: Exception, name: str, folder: Path) -> str:
    """As `attnviz.errors.cause`, with the model's name in place of its folder."""
    return cause(error, str(error).replace(str(folder), name))
