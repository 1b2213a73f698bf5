"""What in a checkpoint's folder is compared with what, and whether a disagreement refuses it or is told in the verdict.

`COMPARISONS` is the whole list. What published checkpoints have is never refused: special tokens that only the
tokenizer or only the configuration has, ends of a text that are several, a few tokens without a row, tables padded with
rows, copies of the vocabulary with a few other entries. A tokenizer's class is not compared with the family: published
checkpoints mix them, such as klue/roberta-base, a RoBERTa with BERT's tokenizer.

The tensors of the weights are in `attnviz.model.weights`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import transformers
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from attnviz.errors import ModelNotAvailableError
from attnviz.model import adapters
from attnviz.model.catalogue import CONFIG_FILE, PICKLE_FILES, SAFETENSORS_FILES, weights_files
from attnviz.model.folder import files_within
from attnviz.model.model import n_rows

_FEW = 0.01
"""Share of a vocabulary up to which other entries are told, and above which it is another vocabulary."""
_SPARE = 0.1
"""Share of a table's rows that no token has, above which it is told; published tables are padded by at most 3%."""
_OTHER_PIECES = 0.1
"""Share of a SentencePiece model's pieces that another tokenizer lacks; conversions rename at most a hundred of them."""
_TWINS = ({"roberta", "xlm_roberta", "camembert"}, {"t5", "mt5"})
"""Families of transformers 5.23.0 that compute the same, so that a checkpoint of one may name the other's class."""
_ROLES = ("pad", "bos", "eos", "cls", "sep", "mask", "unk")
_OF_A_TEXT = ("cls", "sep", "mask", "unk")
"""Roles that an encoder has learned; those of a decoder are often set anew for a chat or for padding."""
_STAND_INS = {"bos": "cls", "eos": "sep"}
"""What begins and ends a text of a tokenizer that has no token for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """How two parts of a folder differ."""

    detail: str
    """Continues a sentence after a colon, without its full stop."""
    is_refused: bool = False


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What is compared of a folder."""

    name: str
    folder: Path
    network: PreTrainedModel | None = None
    """None before the weights are read."""
    tokenizer: PreTrainedTokenizerBase | None = None
    """None before it is read."""

    @cached_property
    def config(self) -> PreTrainedConfig:
        """As transformers reads it."""
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            self.folder, local_files_only=True, trust_remote_code=False
        )
        return config

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """What config.json itself says, with its part for text; not what its class adds."""
        given = self.read(CONFIG_FILE)
        text = given.get("text_config")
        return {**given, **text} if isinstance(text, dict) else given

    @cached_property
    def entries(self) -> Mapping[str, int]:
        """Ids of the tokens of the vocabulary."""
        try:
            return {} if self.tokenizer is None else self.tokenizer.get_vocab()
        except NotImplementedError:  # a tokenizer of characters, whose vocabulary is every character
            return {}

    @cached_property
    def added(self) -> set[str]:
        """Tokens that were added to the vocabulary."""
        assert self.tokenizer is not None
        return {token.content for token in self.tokenizer.added_tokens_decoder.values()}

    @cached_property
    def own(self) -> Mapping[str, Any]:
        """What tokenizer.json says."""
        return self.read("tokenizer.json")

    def read(self, file: str) -> Mapping[str, Any]:
        """A file of settings; empty where there is none, or none that can be read."""
        try:
            given = json.loads((self.folder / file).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return given if isinstance(given, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A part of a folder, what it is compared with, and how."""

    what: str
    with_what: str
    compare: Callable[[Checkpoint], Iterator[Disagreement]]
    advice: str = ""
    """What to do where it is refused, as the beginning of a sentence."""


def compare(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Remarks on what in a folder disagrees, a sentence each; what has not been read yet is not compared.

    Raises:
        ModelNotAvailableError: a disagreement that changes what the model computes, or what its tokens mean.
    """
    remarks = []
    for comparison in COMPARISONS:
        between = f"{comparison.what} and {comparison.with_what}"
        details = []
        for disagreement in comparison.compare(checkpoint):
            if disagreement.is_refused:
                raise ModelNotAvailableError(
                    f"{between} of {checkpoint.name} contradict each other: {disagreement.detail}. {comparison.advice}, or select "
                    "another model."
                )
            details.append(disagreement.detail)
        if details:
            remarks.append(f"{between}: {'; '.join(details)}.")
    return tuple(remarks)


def _families(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    """By the packages that transformers keeps a configuration and a class in."""
    ours = _package(type(checkpoint.config))
    for named in checkpoint.config.architectures or ():
        known = getattr(transformers, re.sub("^(TF|Flax)", "", named), None)
        if (
            isinstance(known, type)
            and issubclass(known, PreTrainedModel)
            and (theirs := _package(known)) != ours
        ):
            yield Disagreement(
                detail=f"{checkpoint.config.model_type} and {named}",
                is_refused=not any({ours, theirs} <= twins for twins in _TWINS),
            )


def _own_classes(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    for named in checkpoint.config.architectures or ():
        if checkpoint.network is not None and not hasattr(transformers, re.sub("^(TF|Flax)", "", named)):
            shown = type(checkpoint.network).__name__
            yield Disagreement(detail=f"{named} is none of them, and the network is shown as {shown}")


def _labels(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    names, numbers = checkpoint.settings.get("id2label"), checkpoint.settings.get("label2id")
    if not isinstance(names, dict) or not isinstance(numbers, dict):
        return
    for number, label in names.items():
        if label in numbers and str(numbers[label]) != str(number):
            yield Disagreement(detail=f"{label} is {number} and {numbers[label]}; the former is shown")
            return


def _word_list(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    path = checkpoint.folder / "vocab.txt"
    if not checkpoint.own or not path.is_file():
        return
    words = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if not all(re.search(r".\s\d+$", word) for word in filter(None, words)):  # fairseq's: words and how often
        listed = {word: number for number, word in enumerate(words[:-1] if words[-1] == "" else words)}
        yield from _entries_differ(checkpoint, listed, is_whole=True)


def _word_table(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    listed = checkpoint.read("vocab.json") if checkpoint.own else {}
    if listed and all(isinstance(number, int) for number in listed.values()):
        yield from _entries_differ(checkpoint, listed, is_whole=True)


def _added_tokens(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    decoder = checkpoint.read("tokenizer_config.json").get("added_tokens_decoder") or {}
    listed = {token["content"]: int(number) for number, token in decoder.items()}
    yield from _entries_differ(checkpoint, listed)
    yield from _entries_differ(checkpoint, checkpoint.read("added_tokens.json"))


def _entries_differ(
    checkpoint: Checkpoint, listed: Mapping[str, int], *, is_whole: bool = False
) -> Iterator[Disagreement]:
    """Where a list of entries gives a token another id than the tokenizer does."""
    tokenizer, entries = checkpoint.tokenizer, checkpoint.entries
    if tokenizer is None or not entries:
        return
    compared = {*listed, *(entries.keys() - checkpoint.added if is_whole else ())}
    others = [token for token in compared if listed.get(token) != entries.get(token)]
    if others:
        special = [token for token in others if token in tokenizer.all_special_tokens]
        first = min(special or others, key=lambda token: (entries.get(token, len(entries)), token))
        yield Disagreement(
            detail=f"{len(others):,} entries differ, such as {first} ({listed.get(first)} and {entries.get(first)})",
            is_refused=bool(special) or len(others) > _FEW * len(compared | entries.keys()),
        )


def _merges(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    path, model = checkpoint.folder / "merges.txt", checkpoint.own.get("model")
    if not path.is_file() or not isinstance(model, dict) or not model.get("merges"):
        return
    ours = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    theirs = [line.rstrip("\r") for line in lines if line.strip() and not line.startswith("#version")]
    n_other = len({*ours} ^ {*theirs}) or sum(one != other for one, other in zip(ours, theirs, strict=False))
    if n_other:
        yield Disagreement(detail=f"{n_other:,} merges differ", is_refused=n_other > _FEW * len(ours))


def _pieces(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    for path in sorted(checkpoint.folder.glob("*.model")):
        pieces = sentencepiece_pieces(path.read_bytes()) if checkpoint.own and checkpoint.entries else []
        absent = [piece for piece in pieces if piece not in checkpoint.entries]
        if len(absent) > _OTHER_PIECES * len(pieces):
            yield Disagreement(
                detail=f"{path.name} has {len(absent):,} pieces that the tokenizer lacks, such as {absent[0]}",
                is_refused=True,
            )


def sentencepiece_pieces(content: bytes) -> list[str]:
    """The pieces of a SentencePiece model; none where these bytes are no such model.

    Source: ``ModelProto`` of sentencepiece_model.proto, whose field 1 is a piece, with its text in field 1; the encoding,
    https://protobuf.dev/programming-guides/encoding.
    """
    pieces = []
    try:
        for field, piece in _fields(content):
            if field == 1:
                pieces.append(next(text for number, text in _fields(piece) if number == 1).decode())
    except (IndexError, ValueError, StopIteration):
        return []
    return pieces


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and contents of a message's fields; of a number, no content."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        field, kind = divmod(varint(), 8)
        if kind == 0:
            varint()
            yield field, b""
            continue
        if kind not in (1, 2, 5):
            raise ValueError("no such kind of field")
        size = varint() if kind == 2 else 8 if kind == 1 else 4
        if at + size > len(message):
            raise ValueError("the message is cut")
        yield field, message[at : at + size]
        at += size


def _special_tokens(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    if checkpoint.tokenizer is None:
        return
    first, second = (
        {
            role: token["content"] if isinstance(token, dict) else token
            for role, token in checkpoint.read(file).items()
            if role in checkpoint.tokenizer.SPECIAL_TOKENS_ATTRIBUTES
        }
        for file in ("special_tokens_map.json", "tokenizer_config.json")
    )
    for role in first.keys() & second.keys():
        if first[role] != second[role] and isinstance(first[role], str):
            read = getattr(checkpoint.tokenizer, role)
            yield Disagreement(
                detail=f"{role} is {first[role]} in the former and {second[role]} in the latter; {read} is read"
            )


def _template(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    if (tokenizer := checkpoint.tokenizer) is None:
        return
    for token, number in _placed(checkpoint.own.get("post_processor")):
        if checkpoint.entries.get(token, number) != number:
            yield Disagreement(
                detail=f"{token} has the id {number} there and {checkpoint.entries[token]} in the vocabulary",
                is_refused=True,
            )
    put = [str(token) for token in tokenizer.convert_ids_to_tokens(tokenizer("")["input_ids"])]
    written = _order(checkpoint.own.get("post_processor"))
    if written != put and sorted(written) == sorted(put):
        yield Disagreement(
            detail=f"a text stands within {' and '.join(written)} there, and is read within {' and '.join(put)}",
            is_refused=True,
        )
    first, last = (getattr(tokenizer, f"{role}_token") for role in ("cls", "sep"))
    if len(put) > 1 and first != last and put[0] == last and put[-1] == first:
        yield Disagreement(
            detail=f"a text begins with sep_token, {last}, and ends with cls_token", is_refused=True
        )


def _placed(processor: Any) -> Iterator[tuple[str, int]]:
    """The tokens that a post-processor of tokenizer.json puts around a text, with their ids."""
    if not isinstance(processor, dict):
        return
    for part in processor.get("processors", ()):
        yield from _placed(part)
    for role in ("cls", "sep"):
        if isinstance(processor.get(role), list):
            yield str(processor[role][0]), int(processor[role][1])
    for token in (processor.get("special_tokens") or {}).values():
        yield from zip(token["tokens"], token["ids"], strict=False)


def _order(processor: Any) -> list[str]:
    """The tokens that a post-processor puts around one text, in order."""
    if not isinstance(processor, dict):
        return []
    for part in processor.get("processors", ()):
        if order := _order(part):
            return order
    if isinstance(processor.get("cls"), list):
        return [str(processor["cls"][0]), str(processor["sep"][0])]
    return [str(step["SpecialToken"]["id"]) for step in processor.get("single", ()) if "SpecialToken" in step]


def _ids(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    if checkpoint.tokenizer is None:
        return
    read = {role: getattr(checkpoint.tokenizer, f"{role}_token_id", None) for role in _ROLES}
    given = {role: checkpoint.settings.get(f"{role}_token_id") for role in _ROLES}
    stated = {role: number for role, number in given.items() if type(number) is int and number >= 0}
    meant = {
        role: read[role] if read[role] is not None else read.get(_STAND_INS.get(role, "")) for role in stated
    }
    for role, number in stated.items():
        if meant[role] is None or meant[role] == number:
            continue
        is_exchanged = any(
            number == meant[other] and stated[other] == meant[role] for other in stated if other != role
        )
        if is_exchanged or read[role] is not None:
            is_written = number != getattr(
                type(checkpoint.config), f"{role}_token_id", None
            )  # not the class's own
            yield Disagreement(
                detail=f"{role}_token_id is {number} in the former and {meant[role]} in the latter",
                is_refused=is_written and (is_exchanged or role in _OF_A_TEXT),
            )
    ends = given["eos"]
    if isinstance(ends, Sequence) and read["eos"] is not None and read["eos"] not in ends:
        yield Disagreement(
            detail=f"eos_token_id is one of {list(ends)} in the former and {read['eos']} in the latter"
        )


def _rows(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    n_row = None if checkpoint.network is None else n_rows(checkpoint.network)
    entries = checkpoint.entries
    if n_row is None or not entries:
        return
    beyond = [token for token, number in entries.items() if number >= n_row]
    if beyond:
        first = min(beyond, key=lambda token: entries[token])
        yield Disagreement(
            detail=f"{len(beyond):,} of the {len(entries):,} tokens have no row, such as {first} with the id {entries[first]}; the table "
            f"has {n_row:,} rows",
            is_refused=len({*beyond} - checkpoint.added) > _FEW * len(entries),
        )
    elif (n_spare := n_row - 1 - max(entries.values())) > _SPARE * n_row:
        yield Disagreement(detail=f"the last {n_spare:,} of the {n_row:,} rows belong to no token")


def _chat_templates(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    path = checkpoint.folder / "chat_template.jinja"
    given = checkpoint.read("tokenizer_config.json").get("chat_template")
    if (
        isinstance(given, str)
        and path.is_file()
        and path.read_text(encoding="utf-8", errors="replace") != given
    ):
        yield Disagreement(detail="they hold two chat templates, and the former is read")


def _other_weights(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    read = {path.name for path in weights_files(checkpoint.folder)}
    kinds = [*SAFETENSORS_FILES[:2], *PICKLE_FILES[:2]]
    present = sorted({path.name for kind in kinds for path in checkpoint.folder.glob(kind)} - read)
    if present:
        others = f" and {len(present) - 1} more" if len(present) > 1 else ""
        yield Disagreement(detail=f"nothing is read of {present[0]}{others}")


def _adapters(checkpoint: Checkpoint) -> Iterator[Disagreement]:
    for folder in adapters.folders(files_within(checkpoint.folder)):
        yield Disagreement(detail=f"the adapter in {folder} is not applied")


def _package(kind: type) -> str:
    """The package of transformers that a class is in, which is its family's: "xlm_roberta"."""
    return kind.__module__.split(".")[-2]


_CORRECT = f"Correct whichever is wrong in {CONFIG_FILE}"
_SAVE_AGAIN = "Save the tokenizer that belongs to these weights again with its save_pretrained, and delete the other files"

COMPARISONS = (
    Comparison(what="model_type", with_what="architectures", compare=_families, advice=_CORRECT),
    Comparison(what="architectures", with_what="the classes of transformers", compare=_own_classes),
    Comparison(what="id2label", with_what="label2id", compare=_labels),
    Comparison(what="vocab.txt", with_what="tokenizer.json", compare=_word_list, advice=_SAVE_AGAIN),
    Comparison(what="vocab.json", with_what="tokenizer.json", compare=_word_table, advice=_SAVE_AGAIN),
    Comparison(what="merges.txt", with_what="tokenizer.json", compare=_merges, advice=_SAVE_AGAIN),
    Comparison(
        what="The SentencePiece model", with_what="tokenizer.json", compare=_pieces, advice=_SAVE_AGAIN
    ),
    Comparison(
        what="The added tokens", with_what="tokenizer.json", compare=_added_tokens, advice=_SAVE_AGAIN
    ),
    Comparison(what="special_tokens_map.json", with_what="tokenizer_config.json", compare=_special_tokens),
    Comparison(
        what="tokenizer.json", with_what="tokenizer_config.json", compare=_template, advice=_SAVE_AGAIN
    ),
    Comparison(what=CONFIG_FILE, with_what="the tokenizer", compare=_ids, advice=_CORRECT),
    Comparison(
        what="The tokenizer",
        with_what="the embeddings",
        compare=_rows,
        advice="Save the tokenizer that belongs to these weights beside them, or add rows with resize_token_embeddings",
    ),
    Comparison(what="chat_template.jinja", with_what="tokenizer_config.json", compare=_chat_templates),
    Comparison(what="The weights", with_what="files beside them", compare=_other_weights),
    Comparison(what="The weights", with_what="adapters", compare=_adapters),
)
"""All comparisons, in the order in which they are told."""
