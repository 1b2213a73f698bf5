"""Loading: a name from the catalogue, a Hub id on disk or a folder becomes a Model that can trace a text.

One concept: the loaded model. Nothing here reaches the network; downloads are in `attnviz.download`.
"""

import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import CRITICAL
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from attnviz import __version__
from attnviz.capture import IMPLEMENTATION, record_forward
from attnviz.catalogue import CONFIG_FILE, Location, default_model, locate, resolve
from attnviz.errors import ModelNotAvailableError, UnsupportedArchitectureError
from attnviz.records import Provenance, Tokens
from attnviz.tokenization import tokenize
from attnviz.trace import Trace
from attnviz.verification import make_reference

_VOCABULARY_FILES = ("tokenizer.json", "vocab*", "*.model")
_NO_LIMIT = 10**6  # tokenizers without a limit of their own say 10^30


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A transformers model running on attnviz's attention, its tokenizer, and its reference.

    Safe to use from several threads: nothing that a call learns is kept on it.
    """

    name: str
    revision: str
    tokenizer: PreTrainedTokenizerBase
    network: PreTrainedModel
    """Runs on attnviz's attention."""
    reference: PreTrainedModel
    """The same parameters on transformers' eager attention."""
    _tokenizer_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def max_tokens(self) -> int | None:
        """Most tokens that the model reads at once, special ones included; None when there is no limit."""
        limits = [_position_limit(self.network), self.tokenizer.model_max_length]
        return min((limit for limit in limits if limit is not None and limit < _NO_LIMIT), default=None)

    @property
    def provenance(self) -> Provenance:
        """What to cite beside a number of this model."""
        return Provenance(
            model=self.name,
            revision=self.revision,
            dtype=str(self.network.dtype).removeprefix("torch."),
            versions={
                "attnviz": __version__,
                "torch": torch.__version__,
                "transformers": transformers.__version__,
            },
        )

    def tokenize(
        self, text: str, text_pair: str | None = None, *, cut: bool = False, max_tokens: int | None = None
    ) -> Tokens:
        """Tokens as this model reads them; arguments as for `trace`, raises as `attnviz.tokenization.tokenize`."""
        limit = min((one for one in (self.max_tokens, max_tokens) if one is not None), default=None)
        with self._tokenizer_lock:  # tokenizers keep their truncation settings on themselves
            return tokenize(self.tokenizer, text, text_pair, max_tokens=limit, cut=cut)

    def trace(
        self, text: str, text_pair: str | None = None, *, cut: bool = False, max_tokens: int | None = None
    ) -> Trace:
        """What passes through every attention of the model while it reads a text.

        Args:
            text_pair: the second sentence of a pair; for an encoder-decoder model, what its decoder
                has written so far (nothing but its start token when None).
            cut: leave out what is over the limit instead of refusing it.
            max_tokens: a lower limit than the model's own; what is computed grows with its square.

        Raises:
            EmptyTextError, TextTooLongError, InvalidTextError: as `attnviz.tokenization.tokenize`.
            CaptureError, UnsupportedArchitectureError: as `attnviz.capture.record_forward`.
        """
        target = None
        if self.network.config.is_encoder_decoder:
            tokens = self.tokenize(text, cut=cut, max_tokens=max_tokens)
            target = self._decoder_tokens(text_pair, cut=cut, max_tokens=max_tokens)
        else:
            tokens = self.tokenize(text, text_pair, cut=cut, max_tokens=max_tokens)
        layers, last_hidden_state = record_forward(self.network, **self.inputs(tokens, target))
        return Trace(
            tokens=tokens,
            target_tokens=target,
            layers=layers,
            last_hidden_state=last_hidden_state.float().numpy(),
            provenance=self.provenance,
        )

    def inputs(self, tokens: Tokens, target: Tokens | None = None) -> dict[str, Any]:
        """Arguments of the network's forward for these tokens: a batch of one, caches off.

        One text needs no padding and so no mask of it; transformers' eager attention would add a matrix
        of zeros to every score.
        """
        inputs: dict[str, Any] = {"input_ids": torch.tensor(tokens.ids)[None]}
        if getattr(self.network.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = torch.tensor(tokens.segment)[None]
        if target is not None:
            inputs["decoder_input_ids"] = torch.tensor(target.ids)[None]
        if hasattr(self.network.config, "use_cache"):
            inputs["use_cache"] = False
        return inputs

    def _decoder_tokens(self, text: str | None, *, cut: bool, max_tokens: int | None) -> Tokens:
        """What the decoder reads: its start token, then the text without its end token."""
        start = _decoder_start(self.network)
        label = str(self.tokenizer.convert_ids_to_tokens(start))
        if text is None:
            return Tokens(
                text="",
                ids=np.array([start], dtype=np.int64),
                labels=(label,),
                is_special=np.array([True]),
                segment=np.array([0]),
                word=np.array([-1]),
            )
        tokens = self.tokenize(text, cut=cut, max_tokens=max_tokens)
        kept = slice(None, -1) if tokens.is_special[-1] else slice(None)
        return Tokens(
            text=text,
            ids=np.concatenate([[start], tokens.ids[kept]]),
            labels=(label, *tokens.labels[kept]),
            is_special=np.concatenate([[True], tokens.is_special[kept]]),
            segment=np.concatenate([[0], tokens.segment[kept]]),
            word=np.concatenate([[-1], tokens.word[kept]]),
            unknown_id=tokens.unknown_id,
            n_cut=tokens.n_cut,
        )


def load_model(name: str | None = None) -> Model:
    """A model whose weights are on this disk, running on attnviz's attention, in float32 on the CPU.

    Args:
        name: a name on offer, any Hub id that has been downloaded, or a checkpoint folder. None for
            bert-base-uncased where it is on disk, and the embedded all-MiniLM-L6-v2 otherwise.

    Raises:
        ModelNotAvailableError: no such model, not on disk, damaged, or not loadable without running
            code that comes with it.
        UnsupportedArchitectureError: its family does not let its attention be replaced.
    """
    offer = resolve(name or default_model())
    location = locate(offer)
    if location is None:
        raise ModelNotAvailableError(
            f"{offer.name} is not on this disk. Download it with `attnviz download {offer.repository}`."
        )
    return _load(offer.name, location)


def _load(name: str, location: Location) -> Model:
    if not (location.folder / CONFIG_FILE).is_file():
        raise ModelNotAvailableError(
            f"The folder of {name} has no {CONFIG_FILE}, so it is no checkpoint. Name a folder that "
            "transformers' save_pretrained wrote, with its tokenizer."
        )
    with _quiet():
        network = _load_network(name, location.folder)
        tokenizer = _load_tokenizer(name, location.folder)
    model = Model(
        name=name,
        revision=location.revision,
        tokenizer=tokenizer,
        network=network,
        reference=make_reference(network),
    )
    model.trace("a")  # an architecture that does not take our attention is refused here, not later
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bar and log: what matters of them is an error of attnviz."""
    had_bar, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity(CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bar:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _load_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase:
    if not any(any(folder.glob(pattern)) for pattern in _VOCABULARY_FILES):
        raise ModelNotAvailableError(  # transformers would make up a tokenizer that knows no word
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


def _load_network(name: str, folder: Path) -> PreTrainedModel:
    try:
        network, info = AutoModel.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,  # left out, transformers asks on the terminal whether to run code
            attn_implementation=IMPLEMENTATION,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, by name
        )
    except pickle.UnpicklingError:
        raise ModelNotAvailableError(
            f"The weights of {name} are a pickle with code in it, which attnviz does not run, or a damaged "
            "one. Convert them to safetensors, or pick a model that has them."
        ) from None
    except Exception as error:  # noqa: BLE001  (transformers raises whatever its readers raise)
        if "trust_remote_code" in str(error):
            raise ModelNotAvailableError(
                f"{name} can only be loaded by running code that comes with it, which attnviz does not do. "
                "Pick another model."
            ) from None
        raise ModelNotAvailableError(
            f"{name} cannot be loaded: {_said(error, name, folder)} Download it again, or pick another model."
        ) from None
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)  # not used by any attention
    if missing:
        raise ModelNotAvailableError(
            f"The checkpoint of {name} lacks {len(missing)} of the model's tensors, such as {missing[0]}; "
            "random numbers would stand in for them. Download it again, or pick another model."
        )
    mismatched = sorted(key for key, *_ in info["mismatched_keys"] if "pooler" not in key)
    if mismatched:
        raise ModelNotAvailableError(
            f"{len(mismatched)} tensors of {name}, such as {mismatched[0]}, have other sizes than its "
            f"{CONFIG_FILE} says. Download it again, or pick another model."
        )
    loaded: PreTrainedModel = network.eval()
    return loaded


def _said(error: Exception, name: str, folder: Path) -> str:
    """First line of what a library says, as a sentence, with the model's name in place of its folder."""
    line = str(error).strip().split("\n")[0].replace(str(folder), name).rstrip(" :") or type(error).__name__
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _position_limit(network: PreTrainedModel) -> int | None:
    """Positions that the model has, less those that RoBERTa and its kin keep for padding."""
    limit = getattr(network.config, "max_position_embeddings", None)
    positions = getattr(getattr(network, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    return limit if limit is None or padding is None else limit - padding - 1


def _decoder_start(network: PreTrainedModel) -> int:
    for config in (network.config, getattr(network, "generation_config", None)):
        if (start := getattr(config, "decoder_start_token_id", None)) is not None:
            return int(start)
    raise UnsupportedArchitectureError(
        f"The configuration of {type(network).__name__} does not say which token its decoder starts with. "
        "Set decoder_start_token_id in its config.json."
    )
