"""The Model: a network on attnviz's attention with its tokenizer, from a text to a Trace.

How it is loaded is in `attnviz.model.loading`.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
import torch
import transformers
from jaxtyping import Float
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from attnviz import __version__
from attnviz.arguments import described, is_list, typed
from attnviz.errors import (
    ArgumentError,
    AttnvizError,
    ModelFailedError,
    SelectionError,
    ShapeError,
    TextTooLongError,
    failures_of,
)
from attnviz.model.batch import batches, padded
from attnviz.model.capture import Length, Recorded, record_batch, record_forward
from attnviz.model.configuration import decoder_start, position_limit
from attnviz.model.given_ids import GivenIds, is_ids, read_ids, tokens_of
from attnviz.model.interventions import Intervention
from attnviz.model.languages import Languages
from attnviz.model.memory import refuse_beyond_memory
from attnviz.model.structure import OutputMap, Structure
from attnviz.model.templates import FramedText, framed, read_framed, templates_of, written_chat
from attnviz.model.token_labels import labels_of
from attnviz.model.token_spans import Reading
from attnviz.model.tokenization import after_start, tokenize, with_masks
from attnviz.model.trace import Trace
from attnviz.model.weights import NO_FILES, LoadedWeights
from attnviz.records import LONG, SPACE, Kind, LayerAttention, Progress, Provenance, Template, Tokens

_NUMBERED = re.compile(r"id (\d{1,9})", re.ASCII)  # as `attnviz.model.token_labels.labels_in_text` names it
Ids = Sequence[Sequence[int]] | np.ndarray | torch.Tensor | Mapping[str, Any]
"""Token ids, [token] or [text, token], or what a tokenizer of transformers gives; beside a plain list of one text's."""
LIVE = "live model"
"""Revision of a model that was in memory already."""
_NO_LIMIT = 10**6  # tokenizers without a limit report 10^30


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A transformers model running on attnviz's attention, its tokenizer, and its reference.

    Safe to use from several threads, since calls do not change it.
    """

    name: str
    revision: str
    """As `attnviz.records.Provenance`."""
    tokenizer: PreTrainedTokenizerBase
    network: PreTrainedModel
    """The network, running on attnviz's attention."""
    reference: PreTrainedModel
    """The same parameters on the family's own eager attention."""
    folder: Path | None = None
    """Folder of the model's files; None for one that was in memory already."""
    weights: LoadedWeights = NO_FILES
    """The files of its weights as they were loaded, and what became of each tensor in them."""
    is_unchanged: Callable[[], bool] | None = None
    """Whether its parameters are those that it was made with; None where attnviz itself loaded them."""
    language_head: PreTrainedModel | None = None
    """The language head, for `attnviz.predict`; None where the checkpoint has none."""
    classifier: PreTrainedModel | None = None
    """The classifier of whole texts; None where the checkpoint has none."""
    structure: Structure = field(default_factory=Structure)
    """Where the layers of the network and their parts are."""
    languages: Languages | None = None
    """The languages of its tokenizer; None where its texts have none."""
    _tokenizer_lock: threading.Lock = field(default_factory=threading.Lock)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {type(self.network).__name__}, revision {self.revision!r})"

    @property
    def max_tokens(self) -> int | None:
        """Most tokens that the model reads at once, special tokens included; None when there is no limit."""
        limits = [position_limit(self.network), self.tokenizer.model_max_length]
        return min((limit for limit in limits if limit is not None and limit < _NO_LIMIT), default=None)

    @property
    def provenance(self) -> Provenance:
        """The model, revision and versions to cite with numbers of this model."""
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

    @property
    def output_maps(self) -> Mapping[Kind, tuple[OutputMap, ...]]:
        """W_O of every layer by kind of attention; a kind is missing where attnviz does not know W_O."""
        return self.structure.output_maps

    @property
    def learned_positions(self) -> Float[np.ndarray, "position d_embedding"] | None:
        """The learned table of position vectors, sharing the model's memory; None where the model has none.

        Rows that a family keeps for padding (RoBERTa's first two) are left out.
        """
        if (table := self.structure.positions) is None:
            return None
        weight = self.network.get_submodule(table.name).get_parameter("weight")
        return np.asarray(weight.detach().float().cpu().numpy()[table.first :])

    @property
    def weights_sha256(self) -> Mapping[str, str]:
        """SHA-256 of each file of its weights, by name, as it was when it was loaded."""
        return self.weights.sha256

    @property
    def mask_label(self) -> str | None:
        """The model's mask token as text, such as "[MASK]"; None where the model has none."""
        label = self.tokenizer.mask_token
        return None if label is None else str(label)

    @property
    def templates(self) -> tuple[Template, ...]:
        """The templates that a text can be put in; only "plain" for an encoder-decoder model."""
        if self.network.config.is_encoder_decoder:
            return ("plain",)
        with self._tokenizing():
            return templates_of(self.tokenizer)

    @typed
    def tokenize(
        self,
        text: str,
        text_pair: str | None = None,
        *,
        cut: bool = False,
        max_tokens: int | None = None,
        language: str | None = None,
        is_target: bool = False,
        template: Template = "plain",
    ) -> Tokens:
        """Tokens as this model reads them.

        Args:
            language: of `languages`; None for the tokenizer's own.
            is_target: whether a decoder writes the text, as transformers' ``text_target``.
            Others as for `trace`.

        Raises:
            SelectionError: the tokenizer does not have the language or the template, or a pair is to be one message of a chat.
            EmptyTextError, TextTooLongError, InvalidTextError: as `attnviz.model.tokenization.tokenize`.
        """
        if template not in (known := self.templates):
            raise SelectionError(
                f"The template {template!r} was asked for; {self.name} has {', '.join(known)}. Select one of those."
            )
        limit = min((limit for limit in (self.max_tokens, max_tokens) if limit is not None), default=None)
        with self._tokenizing():
            told = self._tell(language, is_target=is_target)
            tokens = tokenize(
                self.tokenizer,
                text,
                text_pair,
                max_tokens=limit,
                cut=cut,
                is_target=is_target,
                template=template,
            )
        return replace(tokens, language=told)

    def _tell(self, language: str | None, *, is_target: bool) -> str | None:
        """Tells the tokenizer the language of its next text."""
        if self.languages is not None:
            return self.languages.tell(self.tokenizer, language, is_target=is_target)
        if language:
            raise SelectionError(
                f"The language {language!r} was asked for; the texts of {self.name} are not marked with a language. "
                "Leave it out."
            )
        return None

    @overload
    def trace(
        self,
        text: str,
        text_pair: str | None = None,
        *,
        cut: bool = False,
        max_tokens: int | None = None,
        masked: Collection[int] = (),
        source_language: str | None = None,
        target_language: str | None = None,
        template: Template = "plain",
        interventions: Sequence[Intervention] = (),
        progress: Progress | None = None,
    ) -> Trace: ...

    @overload
    def trace(self, text: Sequence[int], *, progress: Progress | None = None) -> Trace: ...

    @overload
    def trace(self, text: Ids, *, progress: Progress | None = None) -> Trace | list[Trace]: ...

    @overload
    def trace(
        self,
        text: list[str] | tuple[str, ...],
        text_pair: list[str | None] | tuple[str | None, ...] | None = None,
        *,
        cut: bool = False,
        max_tokens: int | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        template: Template = "plain",
        progress: Progress | None = None,
    ) -> list[Trace]: ...

    @typed
    def trace(
        self,
        text: Any,
        text_pair: str | Sequence[str | None] | None = None,
        *,
        cut: bool = False,
        max_tokens: int | None = None,
        masked: Collection[int] = (),
        source_language: str | None = None,
        target_language: str | None = None,
        template: Template = "plain",
        interventions: Sequence[Intervention] = (),
        progress: Progress | None = None,
    ) -> Trace | list[Trace]:
        """The inputs of every attention of the model while it reads a text, or each of several texts.

        Several texts are read in batches, and their traces are those of one text each within rounding. An error names
        its text.

        Args:
            text: a text, or a list of texts, whose traces come in its order; or token ids [token] or [text, token], or what a
                tokenizer gives, without anything else: several texts where there are several rows. Ids that are not those of
                their text are read as they are, and not compared with the tokenizer's.
            text_pair: the second sentence of a pair; for an encoder-decoder model, the text that its decoder
                has written so far (only its start token when None). With a list of texts, a list as long.
            cut: leave out tokens over the limit instead of raising an error.
            max_tokens: a lower limit than the model's own; the cost grows with its square.
            masked: positions of tokens that are replaced by the model's mask token; in the encoder's text of an
                encoder-decoder model.
            source_language: of the text, one of `languages`; None for the tokenizer's own.
            target_language: of the text that the decoder of an encoder-decoder model writes.
            template: what is put around the text, one of `templates`; its tokens are tokens of the trace.
            interventions: changes inside this forward pass; such a trace is not the model's own, and
                `attnviz.verify` refuses it.
            progress: called with the share that is done, 0 to 1; an error that it raises ends the pass.

        Raises:
            ArgumentError: an argument of another type, or one beside ids.
            SelectionError: a position outside the text or of a special token, a model without a mask token, a language or template
                that the tokenizer does not have, a pair that is to be one message of a chat, or positions or interventions for
                several texts.
            ShapeError: the numbers of texts and second texts differ, or shapes of ids and what comes with them.
            EmptyTextError, TextTooLongError, InvalidTextError: as `attnviz.model.tokenization.tokenize`.
            ModelFailedError: the tokenizer's own code raised an error; also as `trace_tokens`.
            CaptureError, OutOfMemoryError, UnsupportedArchitectureError: as `attnviz.model.capture.record_forward`.
        """
        given: dict[str, Any] = {
            "cut": cut,
            "max_tokens": max_tokens,
            "source_language": source_language,
            "target_language": target_language,
            "template": template,
        }
        if not isinstance(text, str) and is_ids(text):
            if (
                text_pair
                or masked
                or any(
                    value is not None and value is not False and value != "plain" for value in given.values()
                )
            ):
                raise ArgumentError(
                    "Model.trace() was given ids and something beside them; ids are read as they are. Give them alone, or the text."
                )
            read = [self._read_ids(ids) for ids in read_ids(text)]
            if len(read) == 1:
                return self.trace_tokens(*read[0], interventions=interventions, progress=progress)
            return self.trace_texts(read, progress=progress)
        if not isinstance(text, str):
            texts = list(text) if is_list(text) else [None]
            if texts and all(isinstance(each, Mapping) for each in texts):
                raise ArgumentError(
                    "Model.trace() was given messages as text; it takes a text, a list of texts or token ids. Model.trace_chat(messages) "
                    "takes a chat."
                )
            if not all(isinstance(each, str) for each in texts):
                raise ArgumentError(
                    f"Model.trace() was given {described(text)} as text; it takes a text, a list of texts, token ids, or what a "
                    "tokenizer gives. Pass one of those."
                )
            text = texts
        if text_pair is not None and isinstance(text, str) != isinstance(text_pair, str):
            raise ArgumentError(
                "Model.trace() was given one text beside a list of texts, as text and text_pair; it takes two texts, or two lists that "
                "are as long. Give each text its second one."
            )
        if isinstance(text, str):
            tokens, target = self.read(text, cast("str | None", text_pair), **given)
            if masked:
                tokens = with_masks(tokens, masked, self.tokenizer, self.name)
            return self.trace_tokens(tokens, target, interventions=interventions, progress=progress)
        if masked or interventions:
            raise SelectionError(
                f"Masked positions or interventions were given for {len(text)} texts; they belong to one text. Trace each text alone."
            )
        pairs = [None] * len(text) if text_pair is None else list(text_pair)
        if len(pairs) != len(text):
            raise ShapeError(
                f"{len(text)} texts and {len(pairs)} second texts were given. Give one for each text."
            )
        read = []
        for number, (first, other) in enumerate(zip(text, pairs, strict=True), 1):
            with _of_text(number, len(text)):
                read.append(self.read(first, other, **given))
        return self.trace_texts(read, progress=progress)

    @typed
    def trace_chat(self, messages: Sequence[Mapping[str, Any]]) -> Trace:
        """The trace of a chat, as the model's own chat template writes it; see `trace`.

        Args:
            messages: a ``role`` and a ``content`` each, as ``apply_chat_template`` of transformers takes. Unless the last one is the
                assistant's, the template begins its answer.

        Raises:
            SelectionError: the tokenizer has no chat template.
            ModelFailedError: the template raises an error; also as `trace`.
            EmptyTextError, TextTooLongError, InvalidTextError: as `trace`, of the whole chat.
        """
        if self.network.config.is_encoder_decoder:
            raise SelectionError(
                f"A chat was given; {self.name} has an encoder and a decoder. Give its two texts to trace()."
            )
        with self._tokenizing():
            text = written_chat(self.tokenizer, messages)
            tokens = tokenize(self.tokenizer, text, max_tokens=self.max_tokens, template="messages")
        return self.trace_tokens(tokens)

    def _read_ids(self, given: GivenIds) -> tuple[Tokens, Tokens | None]:
        """The tokens of ids: those of their text where its ids are the same."""
        if (limit := self.max_tokens) is not None and len(given.ids) > limit:
            raise TextTooLongError(
                f"{len(given.ids):,} ids were given; {self.name} reads at most {limit:,}. Give fewer.",
                length=len(given.ids),
                limit=limit,
                unit="tokens",
            )
        if given.target is not None and limit is not None and len(given.target) > limit:
            raise TextTooLongError(
                f"{len(given.target):,} decoder_input_ids were given; {self.name} reads at most {limit:,}. Give fewer.",
                length=len(given.target),
                limit=limit,
                unit="tokens",
            )
        with self._tokenizing():
            language = self._tell(None, is_target=False)
            tokens = replace(tokens_of(self.tokenizer, given.ids, given.segment), language=language)
            with suppress(AttnvizError):  # a text that cannot be read has ids all the same
                read = tokenize(self.tokenizer, tokens.text, max_tokens=None)
                if read.ids.tolist() == list(given.ids) and not any(given.segment or ()):
                    tokens = replace(read, language=language)
            if not self.network.config.is_encoder_decoder:
                return tokens, None
            if given.target is not None:
                return tokens, tokens_of(self.tokenizer, given.target)
        return tokens, self._decoder_start()

    def read(
        self,
        text: str,
        text_pair: str | None = None,
        *,
        cut: bool = False,
        max_tokens: int | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        template: Template = "plain",
    ) -> tuple[Tokens, Tokens | None]:
        """The tokens that the model reads of a text, and those of the decoder in an encoder-decoder model; arguments as `trace`."""
        limits: dict[str, Any] = {"cut": cut, "max_tokens": max_tokens}
        if self.network.config.is_encoder_decoder:
            tokens = self.tokenize(text, language=source_language, template=template, **limits)
            return tokens, self.decoder_tokens(text_pair, language=target_language, **limits)
        return self.tokenize(text, text_pair, language=source_language, template=template, **limits), None

    @typed
    def trace_texts(
        self, texts: Sequence[tuple[Tokens, Tokens | None]], *, progress: Progress | None = None
    ) -> list[Trace]:
        """As `trace_tokens`, for several texts in batches: the tokens of each, and those that the decoder reads, or None."""
        lengths = [len(tokens) + (0 if target is None else len(target)) for tokens, target in texts]
        traces: dict[int, Trace] = {}
        for batch in batches(lengths):
            inputs = []
            for number in batch:
                with _of_text(number + 1, len(texts)):
                    inputs.append(self.inputs(*texts[number]))
            sizes = [
                Length(read=len(tokens), written=None if target is None else len(target))
                for tokens, target in (texts[number] for number in batch)
            ]
            try:
                recorded = record_batch(self.network, sizes, **padded(self.network, inputs))
            except ModelFailedError:  # one text failed: run each alone to see which
                recorded = []
                for number, alone in zip(batch, inputs, strict=True):
                    with _of_text(number + 1, len(texts)):
                        recorded.append(record_forward(self.network, **alone))
            traces |= {
                number: self._trace(*texts[number], calls_of_text)
                for number, calls_of_text in zip(batch, recorded, strict=True)
            }
            if progress is not None:
                progress(len(traces) / len(texts))
        return [traces[number] for number in range(len(texts))]

    @typed
    def trace_tokens(
        self,
        tokens: Tokens,
        target: Tokens | None = None,
        *,
        interventions: Sequence[Intervention] = (),
        progress: Progress | None = None,
        on_layer: Callable[[LayerAttention], object] | None = None,
    ) -> Trace:
        """As `trace`, for tokens as they are, such as those that a decoder wrote.

        Args:
            target: what the decoder of an encoder-decoder model reads; None for all other models.
            progress: called with the share that is done, 0 to 1; an error that it raises ends the pass.
            on_layer: called with each layer as soon as its queries, keys and values are recorded.

        Raises:
            ModelFailedError: a token has no row in the embeddings, or as `attnviz.model.capture.record_forward`.
            CaptureError, OutOfMemoryError, UnsupportedArchitectureError: as `attnviz.model.capture.record_forward`; a text of over
                1,024 tokens that does not fit into the free memory is refused before it is run.
        """
        if (n_token := max(len(tokens), 0 if target is None else len(target))) > LONG:
            refuse_beyond_memory(self.network, n_token)
        tell = None if on_layer is None else lambda call: on_layer(self.structure.with_output_map(call))
        recorded = record_forward(
            self.network, interventions, progress=progress, on_layer=tell, **self.inputs(tokens, target)
        )
        return self._trace(tokens, target, recorded, interventions)

    def _trace(
        self,
        tokens: Tokens,
        target: Tokens | None,
        recorded: Recorded,
        interventions: Sequence[Intervention] = (),
    ) -> Trace:
        layers, last_hidden_state = recorded
        return Trace(
            tokens=tokens,
            target_tokens=target,
            layers={kind: self.structure.with_output_maps(calls) for kind, calls in layers.items()},
            last_hidden_state=last_hidden_state.float().cpu().numpy(),
            interventions=tuple(interventions),
            provenance=self.provenance,
        )

    @typed
    def probe(self, n_token: int = 1) -> Trace:
        """The trace of some ordinary tokens, chosen by id, since a vocabulary may lack the letters of any given text.

        The special tokens that the tokenizer adds to every text come first, then ids from the middle of the vocabulary
        downwards, so that no id is also the token's position.

        Raises:
            ModelFailedError, CaptureError, OutOfMemoryError, UnsupportedArchitectureError: as `trace`.
        """
        with self._tokenizing():
            added = list(self.tokenizer("", verbose=False)["input_ids"])
            vocabulary, special = len(self.tokenizer), {*added, *self.tokenizer.all_special_ids}
        known = min(vocabulary, n_rows(self.network) or vocabulary)
        downwards = chain(range(known // 2, -1, -1), range(known // 2 + 1, known))
        ordinary = islice((number for number in downwards if number not in special), n_token)
        ids = [*added, *ordinary] or [0]
        return self.trace_tokens(
            Tokens(
                text="",
                ids=np.array(ids, dtype=np.int64),
                labels=labels_of(self.tokenizer, ids),
                is_special=np.array([number in added for number in ids]),
                segment=np.zeros(len(ids), dtype=np.int64),
                word=np.full(len(ids), -1),
                template="ids",
            ),
            self._decoder_start() if self.network.config.is_encoder_decoder else None,
        )

    def token_ids(self, tokens: Tokens, *, is_target: bool = False) -> list[int]:
        """Ids that the tokenizer gives for the text of some tokens, cut in the same place, without masking.

        Args:
            is_target: whether a decoder reads them: its start token first, and no end token.
        """
        if not is_target:
            return self.reading(tokens)[1].ids
        with self._tokenizing():
            self._tell(tokens.language, is_target=True)
            start = [self._start_id()]
        if not tokens.text:
            return start
        read = self.reading(tokens, is_target=True)[1]
        return start + (
            read.ids[:-1] if read.text[-1] < 0 else read.ids[: len(tokens) - 1 if any(tokens.n_cut) else None]
        )

    def reading(self, tokens: Tokens, *, is_target: bool = False) -> tuple[FramedText, Reading]:
        """The text of some tokens in its template, and the tokenizer's reading of it, cut in the same place, without masking."""
        texts = tuple(text for text in (tokens.text, tokens.text_pair) if text is not None)
        limit = len(tokens) if any(tokens.n_cut) else None
        with self._tokenizing():
            self._tell(tokens.language, is_target=is_target)
            given = framed(self.tokenizer, texts, tokens.template)
            return given, read_framed(self.tokenizer, given, is_target=is_target, max_tokens=limit)

    def spellings(self, token_id: int) -> tuple[str, str]:
        """The token's entry in the vocabulary, and the text it is decoded to alone."""
        with self._tokenizing():
            token = self.tokenizer.convert_ids_to_tokens(token_id)
            return (f"id {token_id}" if token is None else str(token)), str(self.tokenizer.decode([token_id]))

    @typed
    def decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens together, as the tokenizer decodes it."""
        with self._tokenizing():
            return str(self.tokenizer.decode(list(ids)))

    @typed
    def name_of(self, token_id: int) -> str:
        """A name that `read_as` reads as this token: its label, or its vocabulary entry if another token has the same label."""
        [label] = labels_of(self.tokenizer, [token_id])
        return label if self.read_as(label) == [token_id] else self.spellings(token_id)[0]

    @typed
    def read_as(self, token: str) -> list[int]:
        """The id of an entry of the vocabulary; for any other text its ids, without special tokens.

        An entry is spelled as in the vocabulary, or with "␣" for a space that belongs to it. An id that has no entry, where a
        head has more rows than its tokenizer has tokens, is written as in "id 263".
        """
        spelled = (
            token,
            token.replace(SPACE, "\u2581"),
            token.replace(SPACE, "\u0120"),
            token.replace(SPACE, "</w>"),
        )
        with self._tokenizing():
            for spelling in dict.fromkeys(spelled):
                entry = self.tokenizer.convert_tokens_to_ids(spelling)
                if isinstance(entry, int) and self.tokenizer.convert_ids_to_tokens(entry) == spelling:
                    return [entry]
            numbered = _NUMBERED.fullmatch(token)
            number = int(numbered[1]) if numbered else self.network.config.vocab_size
            if (
                number < self.network.config.vocab_size
                and self.tokenizer.convert_ids_to_tokens(number) is None
            ):
                return [number]
            text = token.replace(SPACE, " ")
            return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    @contextmanager
    def _tokenizing(self) -> Iterator[None]:
        """A context for one thread at a time, since a tokenizer's truncation settings are its own state."""
        advice = "Type other words, correct its tokenizer.json, or select another model."
        with self._tokenizer_lock, failures_of(f"The tokenizer of {self.name} failed on this text", advice):
            yield

    def inputs(self, tokens: Tokens, target: Tokens | None = None) -> dict[str, Any]:
        """Arguments of the network's forward for these tokens: a batch of one, caches off.

        One text needs no padding and so no padding mask, for which transformers' eager attention would add a matrix
        of zeros to every score.

        Raises:
            ModelFailedError: a token has no row in the embeddings, or the network was trained since it was wrapped.
        """
        if self.is_unchanged is not None and not self.is_unchanged():
            raise ModelFailedError(
                f"The parameters of {self.name} have changed since attnviz.wrap, as by a step of training. Wrap the model again."
            )
        if (tokens.ids < 0).any():
            raise SelectionError(
                f"These tokens have labels and no ids, as those of arrays; {self.name} reads ids. Trace the text with the model."
            )
        self._refuse_beyond(tokens, self.network)
        if target is not None:
            self._refuse_beyond(target, self.network.get_decoder())  # type: ignore[no-untyped-call]
        given = {"input_ids": tokens.ids}
        if getattr(self.network.config, "type_vocab_size", 0) > 1:
            given["token_type_ids"] = tokens.segment
        if target is not None:
            given["decoder_input_ids"] = target.ids
        with failures_of(
            f"{self.name} cannot be given this text", "Try another text, or select another model."
        ):
            device = self.network.device
            inputs: dict[str, Any] = {
                name: torch.tensor(numbers, device=device)[None] for name, numbers in given.items()
            }
        if hasattr(self.network.config, "use_cache"):
            inputs["use_cache"] = False
        return inputs

    def _refuse_beyond(self, tokens: Tokens, reader: nn.Module) -> None:
        """Refuses tokens without an embedding in a network or its decoder; torch says only that an index is out of range."""
        n_row = n_rows(reader)
        if n_row is None or (beyond := np.flatnonzero(tokens.ids >= n_row)).size == 0:
            return
        first = int(beyond[0])
        raise ModelFailedError(
            f"The token {tokens.labels[first]} has the id {tokens.ids[first]}; the embeddings of {self.name} have {n_row:,} "
            f"rows, for ids 0 to {n_row - 1}. Leave that token out of the text, or add rows with resize_token_embeddings."
        )

    def _start_id(self) -> int:
        """The token that the decoder reads first: mBART's is the last one of its text, which may be the language.

        Source: ``shift_tokens_right`` of transformers 5.23.0's mbart and plbart.
        """
        if self.languages is not None and self.network.config.model_type in ("mbart", "plbart"):
            return int(self.tokenizer(text_target="", verbose=False)["input_ids"][-1])
        return decoder_start(self.network)

    def _decoder_start(self, language: str | None = None) -> Tokens:
        """What a decoder reads before it has written anything: its start token."""
        with self._tokenizing():
            told = self._tell(language, is_target=True)
            start = self._start_id()
            labels = labels_of(self.tokenizer, [start])
        return Tokens(
            text="",
            ids=np.array([start], dtype=np.int64),
            labels=labels,
            is_special=np.array([True]),
            segment=np.array([0]),
            word=np.array([-1]),
            language=told,
        )

    def decoder_tokens(
        self, text: str | None, *, cut: bool, max_tokens: int | None, language: str | None
    ) -> Tokens:
        """What the decoder reads: its start token, then the text without the last token after it; arguments as `tokenize`."""
        start = self._decoder_start(language)
        if text is None:
            return start
        tokens = self.tokenize(text, cut=cut, max_tokens=max_tokens, language=start.language, is_target=True)
        return after_start(start, tokens)


@contextmanager
def _of_text(number: int, n_text: int) -> Iterator[None]:
    """A context whose errors name their text, as in "Text 3 of 8: …"."""
    try:
        yield
    except AttnvizError as error:
        error.args = (f"Text {number} of {n_text}: {error}",)
        raise


def n_rows(reader: nn.Module) -> int | None:
    """Number of token ids that a network, or its decoder, has embeddings of; None where its family does not say."""
    try:
        return len(reader.get_input_embeddings().get_parameter("weight"))  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        return None
