"""What a template puts around a text before a model reads it, beside what its tokenizer adds to every text.

One concept: the template of a text. Nothing is added unasked, and all that is added becomes tokens that can be seen. Imports no
torch.

Source: ``apply_chat_template`` of transformers 5.23.0, which writes out a checkpoint's own Jinja template.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from attnviz.errors import SelectionError
from attnviz.model.token_spans import Reading, Span, read_texts
from attnviz.records import Template

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_MARK = "\ue000"
"""Placeholder for the text, to find what a chat template writes around it; a character of the private use area."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FramedText:
    """A text, or a pair, with what a template puts around it."""

    texts: tuple[str, ...]
    """As the tokenizer reads them."""
    template: Template
    content: Span
    """The characters of the first text that are the user's own."""


def templates_of(tokenizer: "PreTrainedTokenizerBase") -> tuple[Template, ...]:
    """The templates that a tokenizer has: a begin-of-text token only if it does not add that itself."""
    templates: list[Template] = ["plain"]
    begin = tokenizer.bos_token_id
    if begin is not None and list(tokenizer("", verbose=False)["input_ids"])[:1] != [begin]:
        templates.append("begin")
    return (*templates, "chat") if tokenizer.chat_template else tuple(templates)


def framed(tokenizer: "PreTrainedTokenizerBase", texts: tuple[str, ...], template: Template) -> FramedText:
    """A text or a pair in a template: in a chat, as the user's message, followed by the beginning of the answer.

    A chat template may write today's date, so that its tokens differ from day to day.

    Args:
        template: one of `templates_of`.

    Raises:
        SelectionError: a pair is to be one message.
    """
    if template != "chat":
        return FramedText(texts=texts, template=template, content=(0, len(texts[0])))
    if len(texts) > 1:
        raise SelectionError(
            "A second sentence was given with the chat template; a message is one text. Leave out the second sentence, or "
            "the template."
        )
    whole, marked = (_written(tokenizer, text) for text in (texts[0], _MARK))
    before, _, after = marked.partition(_MARK)
    return FramedText(texts=(whole,), template=template, content=(len(before), len(whole) - len(after)))


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
        case "plain":
            return read_texts(tokenizer, given.texts, is_target=is_target, max_tokens=max_tokens)
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


def _written(tokenizer: "PreTrainedTokenizerBase", text: str) -> str:
    """The chat in which a text is the user's message and the answer begins."""
    message = [{"role": "user", "content": text}]
    return str(tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False))


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
