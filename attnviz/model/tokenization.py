"""Text to Tokens: the tokens that a model will read, and clear errors for texts that it cannot read.

One concept: the step from text to tokens. Works with any transformers tokenizer; imports no torch.
"""

import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from attnviz.errors import EmptyTextError, InvalidTextError, TextTooLongError
from attnviz.records import Tokens

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

CHARACTER_LIMIT = 100_000
"""Most characters of a text for a tokenizer: ten times more than any model on offer reads, tokenized in under a
second."""

_SPACELESS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\uff66-\uff9f\U00020000-\U0003fffd]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han, which put no spaces between words, so that no rule tells where one ends.

Source: Unicode Standard Annex 29, section 4; the blocks of Unicode 16.0."""

SHOWN_CODES = 3  # code points named in a message before "and so on"


def tokenize(
    tokenizer: "PreTrainedTokenizerBase",
    text: str,
    text_pair: str | None = None,
    *,
    max_tokens: int | None,
    cut: bool = False,
) -> Tokens:
    """Tokens of a text, or of a pair of texts as the model's own template joins them.

    Args:
        max_tokens: most tokens that can be read, special tokens included; None for no limit.
        cut: leave out tokens at the end of the longer text instead of raising an error; their number is
            ``n_cut`` of the result.

    Raises:
        EmptyTextError: a text has no tokens except special tokens.
        TextTooLongError: over `CHARACTER_LIMIT` characters, or over ``max_tokens`` without ``cut``.
        InvalidTextError: a lone surrogate, which is no character.
    """
    texts = (text,) if text_pair is None else (text, text_pair)
    for one, name in zip(texts, ("text", "second text"), strict=False):
        _check_characters(one, name)
    encoding = tokenizer(*texts, return_special_tokens_mask=True, truncation=False, verbose=False)
    full = _segments(encoding)
    for number, name in enumerate(("text", "second text")[: len(texts)]):
        if not (full == number).any():
            raise EmptyTextError(_nothing_left(texts[number], name))
    length = len(full)
    if max_tokens is not None and length > max_tokens:
        if not cut:
            raise TextTooLongError(
                f"This text is {length:,} tokens long; at most {max_tokens:,} can be read. "
                "Shorten it, or cut it there.",
                length=length,
                limit=max_tokens,
                unit="tokens",
            )
        encoding = tokenizer(
            *texts,
            return_special_tokens_mask=True,
            truncation="longest_first",
            max_length=max_tokens,
        )
    kept = _segments(encoding)
    # A special token belongs to the text before it, as in BERT's template: [CLS] a [SEP] b [SEP].
    # The same holds for families without segment ids (RoBERTa).
    segment = np.maximum.accumulate(np.where(kept < 0, 0, kept))
    return Tokens(
        text=text,
        text_pair=text_pair,
        ids=np.array(encoding["input_ids"], dtype=np.int64),
        labels=labels_of(tokenizer, encoding["input_ids"]),
        is_special=np.array(encoding["special_tokens_mask"], dtype=bool),
        segment=segment,
        word=_words(encoding, texts),
        unknown_id=tokenizer.unk_token_id,
        n_cut=tuple(int((full == one).sum() - (kept == one).sum()) for one in range(len(texts))),
    )


def labels_of(tokenizer: "PreTrainedTokenizerBase", ids: list[int]) -> tuple[str, ...]:
    """The label of each token.

    WordPiece tokens are shown as they are, "##" included. Byte-level and SentencePiece tokens encode
    spaces and bytes, so they are decoded; a token that is only part of a character keeps its code, and
    a token that is not in the vocabulary is shown by its id.
    """
    tokens = [
        f"id {number}" if token is None else token
        for number, token in zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True)
    ]
    if type(tokenizer.backend_tokenizer.decoder).__name__ == "WordPiece":
        return tuple(tokens)
    special = set(tokenizer.all_special_tokens)
    labels = []
    for token in tokens:
        decoded = "" if token in special else tokenizer.convert_tokens_to_string([token]).strip()
        labels.append(decoded if decoded and "\N{REPLACEMENT CHARACTER}" not in decoded else token)
    return tuple(labels)


def has_words(*texts: Tokens | None) -> bool:
    """Whether the word of any token in these texts is known."""
    return any(bool((one.word >= 0).any()) for one in texts if one is not None)


def remarks(tokens: Tokens) -> tuple[str, ...]:
    """Notes for users on how their text was read, a sentence each; usually empty."""
    found = []
    if n_unknown := int(tokens.is_unknown.sum()):
        label = tokens.labels[int(np.flatnonzero(tokens.is_unknown)[0])]
        if n_unknown == (~tokens.is_special).sum():
            which = "Every token of this text is"
        else:
            which = "One token is" if n_unknown == 1 else f"{n_unknown:,} tokens are"
        found.append(
            f"{which} {label}: the model's vocabulary has no entry for that piece of text, "
            "so the model cannot tell such pieces apart."
        )
    characters = tokens.text + (tokens.text_pair or "")
    if codes := _control_codes(characters):
        found.append(f"Control characters ({codes}) are in the text; most tokenizers drop them unread.")
    if any(unicodedata.bidirectional(one) in ("R", "AL") for one in characters):
        found.append(
            "Right-to-left text is shown token by token in the order the model reads it, first token first."
        )
    if any(tokens.n_cut):
        found.append(f"The text is cut: {sum(tokens.n_cut):,} tokens at its end are not read.")
    return tuple(found)


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
    found = sorted({one for one in text if unicodedata.category(one) == "Cc" and one not in "\t\n\r"})
    names = ", ".join(f"U+{ord(one):04X}" for one in found[:SHOWN_CODES])
    return f"{names} and so on" if len(found) > SHOWN_CODES else names


def _words(encoding: "BatchEncoding", texts: tuple[str, ...]) -> np.ndarray:
    """For each token the number of its word in its text; -1 where the word is not known.

    Words end where the tokenizer's words end, and at whitespace: Llama 2's tokenizer takes a whole text as one word.
    """
    sequences, own, spans = encoding.sequence_ids(), encoding.word_ids(), encoding[0].offsets
    groups: list[list[int]] = []
    for position, sequence in enumerate(sequences):
        if sequence is None or own[position] is None:
            continue
        before = position - 1
        goes_on = position > 0 and (sequences[before], own[before]) == (sequence, own[position])
        if goes_on and not _is_apart(texts[sequence], spans[before], spans[position]):
            groups[-1].append(position)
        else:
            groups.append([position])
    words = np.full(len(sequences), -1, dtype=np.int64)
    n_words = [0] * len(texts)
    for group in groups:
        sequence = sequences[group[0]] or 0
        written = texts[sequence][spans[group[0]][0] : spans[group[-1]][1]]
        if len(group) == 1 or (written and not _SPACELESS.search(written)):
            words[group] = n_words[sequence]
            n_words[sequence] += 1
    return words


def _is_apart(text: str, left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Whether there is whitespace between two neighbouring tokens, given their spans in the text."""
    first, between, second = text[slice(*left)], text[left[1] : right[0]], text[slice(*right)]
    if any(map(str.isspace, between)) or second[:1].isspace():
        return True
    return first[-1:].isspace() and not first.isspace()  # a single space belongs to the token that follows


def _segments(encoding: "BatchEncoding") -> np.ndarray:
    """For each token the number of the text it comes from; -1 for special tokens."""
    added = np.array(encoding["special_tokens_mask"], dtype=bool)
    found = np.array([-1 if one is None else one for one in encoding.sequence_ids()], dtype=np.int64)
    return np.where(added, -1, found)
