"""What a template puts around a text before a model reads it, beside what its tokenizer adds to every text.

Nothing is added unasked, and all that is added becomes tokens that can be seen. Imports no torch.

Source: ``apply_chat_template`` of transformers 5.23.0, which writes out a checkpoint's own Jinja template.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.errors import ModelFailedError, SelectionError, failures_of
from attnviz.model.token_spans import Reading, Span, read_texts
from attnviz.records import Template, TextForm

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_MARKS = range(0xF0000, 0x10FFFE)
"""Characters of private use, more than a text may have: one that a text lacks marks where a chat template writes it."""
_SPELLED_OUT = re.compile(r'"text"\s*:\s*"$')
"""What stands before the text where a template that asks for a text prints its parts as JSON."""
_READ_WITHOUT = "Read the text without it."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FramedText:
    """A text, or a pair, with what a template puts around it."""

    texts: tuple[str, ...]
    """As the tokenizer reads them."""
    template: TextForm
    content: Span
    """The characters of the first text that are the user's own."""


def templates_of(tokenizer: "PreTrainedTokenizerBase") -> tuple[Template, ...]:
    """The templates that a tokenizer has: a begin-of-text token only if it does not add that itself."""
    templates: list[Template] = ["plain"]
    begin = tokenizer.bos_token_id
    if begin is not None and list(tokenizer("", verbose=False)["input_ids"])[:1] != [begin]:
        templates.append("begin")
    return (*templates, "chat") if tokenizer.chat_template else tuple(templates)


def framed(tokenizer: "PreTrainedTokenizerBase", texts: tuple[str, ...], template: TextForm) -> FramedText:
    """A text or a pair in a template: in a chat, as the user's message, followed by the beginning of the answer.

    A chat template may write today's date, so that its tokens differ from day to day.

    Args:
        template: one of `templates_of`.

    Raises:
        SelectionError: a pair is to be one message.
        ModelFailedError: the chat template raises an error, or does not write the text once and as it is, but for spaces
            around it.
    """
    if template != "chat":
        return FramedText(texts=texts, template=template, content=(0, len(texts[0])))
    if len(texts) > 1:
        raise SelectionError(
            "A second sentence was given with the chat template; a message is one text. Leave out the second sentence, or "
            "the template."
        )
    whole, content = _chat(tokenizer, texts[0])
    return FramedText(texts=(whole,), template=template, content=content)


def read_framed(
    tokenizer: "PreTrainedTokenizerBase",
    given: FramedText,
    *,
    is_target: bool = False,
    max_tokens: int | None = None,
) -> Reading:
    """The reading of a text with what its template puts around it.

    Args:
        is_target: as `attnviz.model.token_spans.read_texts`.
        max_tokens: most tokens in all; the longer text is cut at its end, the template is not. None for no limit.
    """
    match given.template:
        case "plain" | "ids":
            return read_texts(tokenizer, given.texts, is_target=is_target, max_tokens=max_tokens)
        case "messages":
            return read_texts(tokenizer, given.texts, max_tokens=max_tokens, add_special_tokens=False)
        case "begin":
            rest = None if max_tokens is None else max_tokens - 1
            read = read_texts(tokenizer, given.texts, is_target=is_target, max_tokens=rest)
            return Reading(
                ids=[int(tokenizer.bos_token_id), *read.ids],
                text=np.concatenate([[-1], read.text]),
                spans=[(0, 0), *read.spans],
                words=[None, *read.words],
            )
        case "chat":
            read = read_texts(tokenizer, given.texts, is_target=is_target, add_special_tokens=False)
            n_over = 0 if max_tokens is None else max(0, len(read.ids) - max_tokens)
            return _without_end(read, given.content, n_over)


def written_chat(tokenizer: "PreTrainedTokenizerBase", messages: Sequence[Mapping[str, Any]]) -> str:
    """The text that a chat template makes of messages; unless the last one is the assistant's, its answer begins at the end.

    Raises:
        SelectionError: the tokenizer has no chat template.
        ModelFailedError: the chat template raises an error, as for roles that it does not know.
    """
    if not tokenizer.chat_template:
        raise SelectionError(
            "Messages were given, but this model's tokenizer has no chat template. Give their text to trace()."
        )
    is_answered = bool(messages) and messages[-1].get("role") == "assistant"
    with failures_of(
        "The chat template of this model fails on these messages",
        "Give a list of {'role': ..., 'content': ...}.",
    ):
        return str(
            tokenizer.apply_chat_template(
                list(map(dict, messages)), add_generation_prompt=not is_answered, tokenize=False
            )
        )


def _chat(tokenizer: "PreTrainedTokenizerBase", text: str) -> tuple[str, Span]:
    """The chat in which a text is the user's message and the answer begins, and where the text stands in it.

    A template of a model that also reads images takes a message in parts, and of a mere text writes nothing.
    """
    mark = next(chr(number) for number in _MARKS if chr(number) not in text)
    failures = []
    for in_parts in (False, True):
        try:
            with failures_of("The chat template of this model fails", _READ_WITHOUT):
                whole = _written(tokenizer, text, in_parts)
                pieces = _written(tokenizer, f"{mark}{text}{mark}", in_parts).split(mark)
        except ModelFailedError as error:
            failures.append(error)
            continue
        before, after = pieces[0], pieces[-1]
        if len(pieces) == 3 and not (in_parts and _SPELLED_OUT.search(before)):
            for own in (text, text.strip(), text.lstrip(), text.rstrip()):
                if whole == f"{before}{own}{after}":
                    return whole, (len(before), len(before) + len(own))
        failures.append(
            ModelFailedError(f"The chat template of this model {_loss(pieces, text)}. {_READ_WITHOUT}")
        )
    raise failures[0]


def _loss(pieces: list[str], text: str) -> str:
    """What a template does with a text that it does not write once and as it is, as the end of a sentence."""
    match len(pieces) - 1:
        case 0:
            return "leaves the text out, so that the model would read the same for every text"
        case 2 if pieces[1] == text:
            return "writes other things around this text than around others, so that the text cannot be told from them"
        case 1 | 2:
            return "does not write the text as it is, so that its tokens would be those of another text"
        case n_mark:
            return f"writes the text {n_mark // 2} times, so that it has no one place there"


def _written(tokenizer: "PreTrainedTokenizerBase", text: str, in_parts: bool) -> str:
    """The chat in which a text, or a list of one part, is the user's message and the answer begins."""
    content: Any = [{"type": "text", "text": text}] if in_parts else text
    message = {"role": "user", "content": content}
    return str(tokenizer.apply_chat_template([message], add_generation_prompt=True, tokenize=False))


def _without_end(read: Reading, content: Span, n_over: int) -> Reading:
    """The reading without the last ``n_over`` tokens of the user's own text, or without all of them if there are fewer."""
    own = [at for at, (first, stop) in enumerate(read.spans) if content[0] <= first < stop <= content[1]]
    left_out = set(own[len(own) - min(n_over, len(own)) :])
    kept = [at for at in range(len(read.ids)) if at not in left_out]
    return replace(
        read,
        ids=[read.ids[at] for at in kept],
        text=read.text[kept],
        spans=[read.spans[at] for at in kept],
        words=[read.words[at] for at in kept],
    )
