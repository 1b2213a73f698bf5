"""Sets of prompts: what holds for one sentence may not hold for another, so an experiment is run on several.

The outcome of a pair is the logit of the answer minus that of the wrong answer, at the mask token of the clean prompt
where it has one, and otherwise at the last token. Results over all pairs are averaged by `attnviz.effects.over_pairs`.

Source: Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 2.2, which averages logit differences
over a set of such pairs; Heimersheim and Nanda 2024 (arXiv:2404.15255), section 4, on the choice of pairs.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from attnviz.arguments import typed
from attnviz.effects.outcome import MeasuredOutcome, TokenAnswer, measured
from attnviz.effects.patching import differing
from attnviz.errors import AttnvizError, EmptyTextError, InvalidTextError
from attnviz.records import Record, Template
from attnviz.records.table import table_csv

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

COLUMNS = ("clean", "corrupted", "answer", "wrong_answer")
"""The columns of the table, in this order if it has no header."""
MOST_PROMPTS = 200
"""Most rows of a set; each takes as long as one pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair(Record):
    """Two prompts of the same number of tokens, which differ in what decides between two answers."""

    clean: str
    corrupted: str
    answer: str
    """The token that the clean prompt is continued with, spelled with its space: " Mary"."""
    wrong_answer: str
    """The token that the corrupted prompt is continued with."""
    template: Template = "plain"
    """Template around both prompts, as for `Model.trace`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSet(Record):
    """The pairs of a table, and a sentence for each line that holds no pair."""

    pairs: tuple[PromptPair, ...]
    lines: tuple[int, ...]
    """The line of each pair, counted from 1."""
    refused: tuple[str, ...] = ()

    def csv(self) -> bytes:
        """The table, as `read_prompts` reads it."""
        return table_csv(COLUMNS, [[getattr(pair, name) for name in COLUMNS] for pair in self.pairs])


@typed
def read_prompts(text: str, template: Template = "plain") -> PromptSet:
    """The pairs of a table: comma-separated, or tab-separated as pasted from spreadsheets, with or without a header.

    Spaces around answers count, those around prompts do not.

    Args:
        template: of all pairs.

    Raises:
        EmptyTextError: there is no row.
        InvalidTextError: the header lacks a column, or the quotes of a CSV file do not match.
    """
    text = text.removeprefix("\ufeff")
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise InvalidTextError(
            f"The table of prompts cannot be read as CSV: {error}. Put a text with commas or quotes between double quotes."
        ) from error
    numbered = [(number, row) for number, row in enumerate(rows, 1) if any(map(str.strip, row))]
    if (
        numbered
        and (names := [cell.strip().lower() for cell in numbered[0][1]])
        and set(names) & set(COLUMNS)
    ):
        if missing := [name for name in COLUMNS if name not in names]:
            raise InvalidTextError(
                f"The first line names the columns {', '.join(names)}; {' and '.join(missing)} is missing. Name the columns "
                f"{', '.join(COLUMNS)}, or leave that line out."
            )
        order = [names.index(name) for name in COLUMNS]
        numbered = [
            (number, [row[at] if at < len(row) else "" for at in order]) for number, row in numbered[1:]
        ]
    return prompts_of(numbered, template)


def prompts_of(rows: Iterable[tuple[int, Sequence[str]]], template: Template = "plain") -> PromptSet:
    """The pairs of numbered rows, in a template.

    Raises:
        EmptyTextError: there is no row.
    """
    pairs: list[PromptPair] = []
    lines: list[int] = []
    refused: list[str] = []
    for number, row in rows:
        if len(row) != len(COLUMNS):
            refused.append(
                f"Line {number} has {len(row)} columns; a pair has {len(COLUMNS)}: {', '.join(COLUMNS)}."
            )
        elif missing := [name for name, cell in zip(COLUMNS, row, strict=True) if not cell.strip()]:
            refused.append(f"Line {number} has no {' and no '.join(missing)}.")
        elif len(pairs) == MOST_PROMPTS:
            refused.append(f"Line {number} is left out; a set has at most {MOST_PROMPTS} pairs.")
        else:
            clean, corrupted, answer, wrong = row
            pairs.append(
                PromptPair(
                    clean=clean.strip(),
                    corrupted=corrupted.strip(),
                    answer=answer,
                    wrong_answer=wrong,
                    template=template,
                )
            )
            lines.append(number)
    if not pairs and not refused:
        raise EmptyTextError(
            "The table of prompts has no row. Give a clean and a corrupted prompt with both answers."
        )
    return PromptSet(pairs=tuple(pairs), lines=tuple(lines), refused=tuple(refused))


@typed
def checked_prompts(model: "Model", prompts: PromptSet) -> PromptSet:
    """The pairs that can be run on this model, and a sentence for each other line.

    Both prompts need the same number of tokens, and both answers are one token each.
    """
    kept, lines, refused = [], [], list(prompts.refused)
    for pair, line in zip(prompts.pairs, prompts.lines, strict=True):
        try:
            prepared(model, pair)
        except AttnvizError as error:
            refused.append(f"Line {line}: {error}")
        else:
            kept.append(pair)
            lines.append(line)
    return replace(prompts, pairs=tuple(kept), lines=tuple(lines), refused=tuple(refused))


@typed
def prepared(model: "Model", pair: PromptPair) -> "tuple[Trace, Trace, MeasuredOutcome]":
    """Inputs of an experiment: the traces of the clean and the corrupted prompt, and the outcome of the clean one.

    Raises:
        EmptyTextError, TextTooLongError, InvalidTextError: as `Model.trace`.
        SelectionError: an answer is no token of the vocabulary, or both are the same.
        ShapeError: the prompts have different numbers of tokens.
        UnsupportedArchitectureError: no language head.
    """
    receiver, donor = (model.trace(text, template=pair.template) for text in (pair.clean, pair.corrupted))
    differing(receiver.tokens, donor.tokens)
    return receiver, donor, measured(model, receiver, outcome_of_pair(model, receiver, pair))


@typed
def outcome_of_pair(model: "Model", clean: "Trace", pair: PromptPair) -> TokenAnswer:
    """The logit of the answer minus that of the wrong answer, at the mask token of the clean prompt or its last token."""
    tokens = clean.last_tokens
    masks = np.flatnonzero(tokens.ids == model.tokenizer.mask_token_id).tolist()
    at = masks[0] if masks else len(tokens) - 1
    return TokenAnswer(position=at, token=pair.answer, against=pair.wrong_answer)
