"""Text to Tokens: the tokens that a model will read, and clear errors for texts that it cannot read.

Works with any transformers tokenizer; imports no torch.
"""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnviz.errors import EmptyTextError, InvalidTextError, SelectionError, TextTooLongError
from attnviz.model.templates import framed, read_framed
from attnviz.model.token_labels import PART, labels_in_text
from attnviz.model.token_spans import Reading, read_texts
from attnviz.model.words import words_of
from attnviz.records import TextForm, Tokens, check_index

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHARACTER_LIMIT = 100_000
"""Most characters of a text for a tokenizer: ten times more than any model on offer reads, tokenized in under a
second."""

LONGEST_WORD = 100
"""Characters at the end of a text that is cut within which a space is looked for."""
_LAST_SPACE = re.compile(r"\s\S*\Z")

SHOWN_CODES = 3  # code points named in a message before "and so on"


def tokenize(
    tokenizer: "PreTrainedTokenizerBase",
    text: str,
    text_pair: str | None = None,
    *,
    max_tokens: int | None,
    cut: bool = False,
    is_target: bool = False,
    template: TextForm = "plain",
) -> Tokens:
    """Tokens of a text, or of a pair of texts as the model's own template joins them.

    Args:
        max_tokens: most tokens that can be read, special tokens included; None for no limit.
        cut: leave out tokens at the end of the longer text instead of raising an error; their number is
            ``n_cut`` of the result. What follows `CHARACTER_LIMIT` characters is not even split into tokens; ``n_unread``
            of the result counts it.
        is_target: read a single text as one that the decoder writes, which some tokenizers read differently.
        template: what is put around the text; a cut does not change it.

    Raises:
        EmptyTextError: a text has no tokens of its own.
        SelectionError: the tokenizer does not have the template, or a pair is to be one message of a chat.
        TextTooLongError: over `CHARACTER_LIMIT` characters, or over ``max_tokens`` without ``cut``.
        InvalidTextError: a lone surrogate, which is no character.
    """
    given_texts = (text,) if text_pair is None else (text, text_pair)
    texts = tuple(map(_beginning, given_texts)) if cut else given_texts
    for part, name in zip(texts, ("text", "second text"), strict=False):
        _check_characters(part, name)
    bare = read_texts(tokenizer, texts, is_target=is_target)
    for number, name in enumerate(("text", "second text")[: len(texts)]):
        if not (bare.text == number).any():
            raise EmptyTextError(_nothing_left(texts[number], name))
    given = framed(tokenizer, texts, template)
    read = full = bare if template == "plain" else read_framed(tokenizer, given, is_target=is_target)
    length = len(full.ids)
    if max_tokens is not None and length > max_tokens:
        if not cut:
            raise TextTooLongError(
                f"This text is {length:,} tokens long; at most {max_tokens:,} can be read. "
                "Shorten it, or cut it there.",
                length=length,
                limit=max_tokens,
                unit="tokens",
            )
        read = read_framed(tokenizer, given, is_target=is_target, max_tokens=max_tokens)
        if len(read.ids) > max_tokens:
            raise TextTooLongError(
                f"The chat template alone is {len(read.ids):,} tokens long; at most {max_tokens:,} can be read. Read the text "
                "without it.",
                length=length,
                limit=max_tokens,
                unit="template",
            )
    labels, pieces = labels_in_text(tokenizer, read.ids)
    unknown = _unknown(tokenizer, read, given.texts)
    in_text = _special_in_text(tokenizer, read, unknown)
    is_special = (read.text < 0) | np.isin(np.arange(len(read.ids)), in_text)
    return Tokens(
        text=texts[0],
        text_pair=None if text_pair is None else texts[1],
        ids=np.array(read.ids, dtype=np.int64),
        labels=labels,
        pieces=pieces,
        is_special=is_special,
        # A special token belongs to the text before it, as in BERT's template: [CLS] a [SEP] b [SEP].
        # The same holds for families without segment ids (RoBERTa).
        segment=np.maximum.accumulate(np.where(read.text < 0, 0, read.text)),
        word=np.where(is_special, -1, words_of(read, given.texts, labels)),
        template=template,
        in_text=in_text,
        unknown=unknown,
        n_cut=tuple(
            int((full.text == number).sum() - (read.text == number).sum()) for number in range(len(texts))
        ),
        n_unread=tuple(len(given) - len(part) for given, part in zip(given_texts, texts, strict=True)),
    )


def _unknown(tokenizer: "PreTrainedTokenizerBase", read: Reading, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Positions of the unknown token, except where the text itself spells it out.

    GPT-2's unknown token is its end-of-text token, "<|endoftext|>", which a user can type.
    """
    return tuple(
        position
        for position, (number, which, span) in enumerate(zip(read.ids, read.text, read.spans, strict=True))
        if number == tokenizer.unk_token_id
        and which >= 0
        and texts[which][slice(*span)].strip() != str(tokenizer.unk_token)
    )


def special_ids(tokenizer: "PreTrainedTokenizerBase") -> frozenset[int]:
    """Ids of a vocabulary's special tokens; the mask token is not one, since it stands for a token of the text."""
    added = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset({*tokenizer.all_special_ids, *added} - {tokenizer.mask_token_id})


def _special_in_text(
    tokenizer: "PreTrainedTokenizerBase", read: Reading, unknown: tuple[int, ...]
) -> tuple[int, ...]:
    """Positions of special tokens in the text itself, such as <|im_start|>; unknown pieces of text do not count."""
    special = special_ids(tokenizer)
    return tuple(
        position
        for position, (number, which) in enumerate(zip(read.ids, read.text, strict=True))
        if which >= 0 and number in special and position not in unknown
    )


def with_masks(
    tokens: Tokens, positions: Collection[int], tokenizer: "PreTrainedTokenizerBase", model: str
) -> Tokens:
    """The tokens, with some replaced by the mask token.

    Args:
        model: name of the model, for messages.

    Raises:
        SelectionError: a position outside the text or of a special token, or a tokenizer without a mask token.
    """
    mask_id = tokenizer.mask_token_id
    if mask_id is None:
        raise SelectionError(
            f"Tokens were to be masked; {model} has no mask token. Select a model that has one, such as BERT."
        )
    ids, labels, pieces = tokens.ids.copy(), list(tokens.labels), list(tokens.pieces)
    for position in sorted(positions):
        check_index("token", position, len(tokens), "this text")
        if tokens.is_special[position]:
            raise SelectionError(
                f"Token {position}, {labels[position]}, was to be masked; it is a special token. Mask another one."
            )
        ids[position], labels[position], pieces[position] = (
            mask_id,
            str(tokenizer.mask_token),
            str(tokenizer.mask_token),
        )
    return replace(
        tokens,
        ids=ids,
        labels=tuple(labels),
        pieces=tuple(pieces),
        unknown=tuple(position for position in tokens.unknown if position not in positions),
        masked={position: tokens.labels[position] for position in sorted(positions)},
    )


def after_start(start: Tokens, tokens: Tokens) -> Tokens:
    """What a decoder reads: its start token, then its text without the last token that the tokenizer adds at the end."""
    kept = slice(None, -1) if tokens.is_added[-1] else slice(None)
    return replace(
        tokens,
        ids=np.concatenate([start.ids, tokens.ids[kept]]),
        labels=(*start.labels, *tokens.labels[kept]),
        pieces=(*start.labels, *tokens.pieces[kept]),
        is_special=np.concatenate([start.is_special, tokens.is_special[kept]]),
        segment=np.concatenate([start.segment, tokens.segment[kept]]),
        word=np.concatenate([start.word, tokens.word[kept]]),
        language=start.language,
        in_text=tuple(position + 1 for position in tokens.in_text),
        unknown=tuple(position + 1 for position in tokens.unknown),
    )


def remarks(tokens: Tokens) -> tuple[str, ...]:
    """Notes for users on how their text was read, a sentence each; usually empty."""
    sentences = []
    if n_unknown := int(tokens.is_unknown.sum()):
        label = tokens.labels[int(np.flatnonzero(tokens.is_unknown)[0])]
        if n_unknown == (~tokens.is_added).sum():
            which = "Every token of this text is"
        else:
            which = "One token is" if n_unknown == 1 else f"{n_unknown:,} tokens are"
        sentences.append(
            f"{which} {label}: the model's vocabulary has no entry for that piece of text, "
            "so the model cannot tell such pieces apart."
        )
    characters = tokens.text + (tokens.text_pair or "")
    if codes := _control_codes(characters):
        is_read = any(code in label for code in codes.split(", ") for label in tokens.labels)
        fate = "they are read, and shown by their codes" if is_read else "most tokenizers drop them unread"
        sentences.append(f"Control characters ({codes}) are in the text; {fate}.")
    if shared := next((label for label in tokens.labels if PART.search(label)), None):
        sentences.append(
            f"Several tokens share a character; each is shown with its part of it, such as “{shared}”: this tokenizer "
            "splits a text into bytes."
        )
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in characters):
        sentences.append(
            "Right-to-left text is shown token by token in the order the model reads it, first token first."
        )
    units = (sum(tokens.n_cut), "token"), (sum(tokens.n_unread), "character")
    if left_out := " and ".join(f"{number:,} {unit}{'s' * (number > 1)}" for number, unit in units if number):
        verb = "is" if sum(number for number, _ in units) == 1 else "are"
        sentences.append(f"The text is cut: {left_out} at its end {verb} not read.")
    return tuple(sentences)


def _beginning(text: str) -> str:
    """As much of a text as a tokenizer is given, to the end of a word where there is one near."""
    if len(text) <= CHARACTER_LIMIT:
        return text
    last = _LAST_SPACE.search(text, CHARACTER_LIMIT - LONGEST_WORD, CHARACTER_LIMIT + 1)
    return text[: CHARACTER_LIMIT if last is None else last.start()]


def _check_characters(text: str, name: str) -> None:
    if len(text) > CHARACTER_LIMIT:
        raise TextTooLongError(
            f"The {name} is {len(text):,} characters long; attnviz takes at most {CHARACTER_LIMIT:,}. "
            "Paste a shorter passage.",
            length=len(text),
            limit=CHARACTER_LIMIT,
            unit="characters",
        )
    if not text.strip():
        raise EmptyTextError(f"The {name} is empty. Type a sentence.")
    for index, character in enumerate(text):
        if unicodedata.category(character) == "Cs":
            raise InvalidTextError(
                f"Character {index + 1} of the {name} is U+{ord(character):04X}, one half of a surrogate "
                "pair and no character by itself. Delete it, or paste the text again."
            )


def _nothing_left(text: str, name: str) -> str:
    codes = _control_codes(text)
    made_of = f"control characters ({codes})" if codes else "characters that this model's tokenizer drops"
    return f"The {name} holds no token, only {made_of}. Type a sentence."


def _control_codes(text: str) -> str:
    """Control characters of a text, named by code: "U+0000, U+0007"; "" when there are none."""
    codes = sorted(
        {
            character
            for character in text
            if unicodedata.category(character) == "Cc" and character not in "\t\n\r"
        }
    )
    names = ", ".join(f"U+{ord(code):04X}" for code in codes[:SHOWN_CODES])
    return f"{names} and so on" if len(codes) > SHOWN_CODES else names
