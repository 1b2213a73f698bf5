"""Loading: a name from the catalogue, a Hub id on disk or a folder becomes a Model that can trace a text.

One concept: the loaded model. Nothing here reaches the network; downloads are in `attnviz.download`.
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from attnviz import __version__
from attnviz.capture import find_output_weights, record_forward
from attnviz.catalogue import CONFIG_FILE, Location, default_model, locate, resolve, weights_files
from attnviz.checkpoint import load_network, load_tokenizer, quiet
from attnviz.errors import ModelNotAvailableError, SelectionError, UnsupportedArchitectureError
from attnviz.interventions import Intervention
from attnviz.records import Kind, LayerAttention, Provenance, Tokens, check_index
from attnviz.tokenization import tokenize
from attnviz.trace import Trace
from attnviz.verification import make_reference

_NO_LIMIT = 10**6  # tokenizers without a limit of their own say 10^30


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A transformers model running on attnviz's attention, its tokenizer, and its reference.

    Safe to use from several threads: nothing that a call learns is kept on it.
    """

    name: str
    revision: str
    folder: Path
    """Where its files are."""
    tokenizer: PreTrainedTokenizerBase
    network: PreTrainedModel
    """Runs on attnviz's attention."""
    reference: PreTrainedModel
    """The same parameters on transformers' eager attention."""
    head: PreTrainedModel | None = field(default=None, repr=False)
    """Its language head, for `attnviz.predict`; None where the checkpoint has none."""
    output_weights: Mapping[Kind, tuple[np.ndarray, ...]] = field(default_factory=dict, repr=False)
    """W_O of every layer, [head, d_value, d_model], by kind of attention; the network's own parameters."""
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

    @cached_property
    def weights_sha256(self) -> Mapping[str, str]:
        """SHA-256 of each file of its weights, by name; read from disk once, about 1 s for 500 MB."""
        found = {}
        for path in weights_files(self.folder):
            with path.open("rb") as file:
                found[path.name] = file_digest(file, "sha256").hexdigest()
        return MappingProxyType(found)

    @property
    def mask_label(self) -> str | None:
        """What the model's mask token is written as, such as "[MASK]"; None where it has none."""
        label = self.tokenizer.mask_token
        return None if label is None else str(label)

    def tokenize(
        self, text: str, text_pair: str | None = None, *, cut: bool = False, max_tokens: int | None = None
    ) -> Tokens:
        """Tokens as this model reads them; arguments as for `trace`, raises as `attnviz.tokenization.tokenize`."""
        limit = min((one for one in (self.max_tokens, max_tokens) if one is not None), default=None)
        with self._tokenizer_lock:  # tokenizers keep their truncation settings on themselves
            return tokenize(self.tokenizer, text, text_pair, max_tokens=limit, cut=cut)

    def trace(
        self,
        text: str,
        text_pair: str | None = None,
        *,
        cut: bool = False,
        max_tokens: int | None = None,
        masked: Collection[int] = (),
        interventions: Sequence[Intervention] = (),
    ) -> Trace:
        """What passes through every attention of the model while it reads a text.

        Args:
            text_pair: the second sentence of a pair; for an encoder-decoder model, what its decoder
                has written so far (nothing but its start token when None).
            cut: leave out what is over the limit instead of refusing it.
            max_tokens: a lower limit than the model's own; what is computed grows with its square.
            masked: positions of tokens that the model's mask token takes the place of; of the encoder's text
                in an encoder-decoder model.
            interventions: what is changed inside this forward pass; such a trace is not the model's own, and
                `attnviz.verify` refuses it.

        Raises:
            SelectionError: a position that is not there or special, or a model without a mask token.
            EmptyTextError, TextTooLongError, InvalidTextError: as `attnviz.tokenization.tokenize`.
            CaptureError, UnsupportedArchitectureError: as `attnviz.capture.record_forward`.
        """
        target = None
        if self.network.config.is_encoder_decoder:
            tokens = self.tokenize(text, cut=cut, max_tokens=max_tokens)
            target = self._decoder_tokens(text_pair, cut=cut, max_tokens=max_tokens)
        else:
            tokens = self.tokenize(text, text_pair, cut=cut, max_tokens=max_tokens)
        if masked:
            tokens = self._mask(tokens, masked)
        layers, last_hidden_state = record_forward(self.network, interventions, **self.inputs(tokens, target))
        return Trace(
            tokens=tokens,
            target_tokens=target,
            layers={kind: self._with_output_weights(kind, calls) for kind, calls in layers.items()},
            last_hidden_state=last_hidden_state.float().numpy(),
            interventions=tuple(interventions),
            provenance=self.provenance,
        )

    def _with_output_weights(
        self, kind: Kind, calls: tuple[LayerAttention, ...]
    ) -> tuple[LayerAttention, ...]:
        known = self.output_weights.get(kind)
        if known is None:
            return calls
        return tuple(replace(call, output_weight=weight) for call, weight in zip(calls, known, strict=True))

    def _mask(self, tokens: Tokens, positions: Collection[int]) -> Tokens:
        """The tokens with the mask token in the place of some."""
        label, mask_id = self.mask_label, self.tokenizer.mask_token_id
        if label is None or mask_id is None:
            raise SelectionError(
                f"Tokens were to be masked; {self.name} has no mask token. Pick a model such as BERT that has one."
            )
        ids, labels = tokens.ids.copy(), list(tokens.labels)
        for position in sorted(positions):
            check_index("token", position, len(tokens), "this text")
            if tokens.is_special[position]:
                raise SelectionError(
                    f"Token {position}, {labels[position]}, was to be masked; the tokenizer put it around the "
                    "text. Mask a token of the text."
                )
            ids[position], labels[position] = mask_id, label
        return replace(
            tokens,
            ids=ids,
            labels=tuple(labels),
            masked={position: tokens.labels[position] for position in sorted(positions)},
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


_loading = threading.Lock()
"""transformers 5.23.0 changes its own classes while it reads a checkpoint (`initialization.no_tie_weights`): of two
that are read at once one lacks its tied weights, and so may every later one."""


def _load(name: str, location: Location) -> Model:
    if not (location.folder / CONFIG_FILE).is_file():
        raise ModelNotAvailableError(
            f"The folder of {name} has no {CONFIG_FILE}, so it is no checkpoint. Name a folder that "
            "transformers' save_pretrained wrote, with its tokenizer."
        )
    with _loading, quiet():
        network, head = load_network(name, location.folder)
        tokenizer = load_tokenizer(name, location.folder)
    model = Model(
        name=name,
        revision=location.revision,
        folder=location.folder,
        tokenizer=tokenizer,
        network=network,
        reference=make_reference(network),
        head=head,
    )
    probe = model.trace("a")  # an architecture that does not take our attention is refused here, not later
    inputs = model.inputs(probe.tokens, probe.target_tokens)
    return replace(model, output_weights=find_output_weights(network, **inputs))


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
