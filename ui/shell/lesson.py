"""Lessons for a class: each a data file whose steps are links, with what to see and what the teacher may say.

A Lesson. Those of attnviz are in the folder ``lessons``; ATTNVIZ_LESSONS names a folder of a teacher's own.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ui.choice.fields import LinkError
from ui.choice.selection import FIELDS
from ui.components.present import PARAMETER
from ui.limits import LESSONS
from ui.part import Part, pages

BUNDLED = Path(__file__).with_name("lessons")
ORDER = (
    "weighted_mean",
    "why_scale",
    "what_heads_do",
    "cls_resting_place",
    "large_weight_small_part",
    "weights_are_not_effects",
    "order",
)
"""Order of the bundled lessons; a teacher's own follow."""
_OF_LESSON = {"title": str, "minutes": int, "purpose": str, "steps": list}
_OF_STEP = {"link": str, "see": str}
_MAY_BE = ("say", "question", "answer")
_LONGEST = 2000  # characters of a text


class LessonError(ValueError):
    """A lesson's file cannot be used; one sentence names the file and the place, what was found and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A screen, and what to say about it."""

    page: Part
    params: dict[str, str]
    """The parameters of its link."""
    see: str
    """What to see, in a sentence or two."""
    say: str = ""
    """What the teacher may say."""
    question: str = ""
    """Asked before the answer is shown; empty for none."""
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Steps in their order."""

    name: str
    """Of the file, without its ending; links name a lesson by it."""
    title: str
    minutes: int
    purpose: str
    steps: tuple[Step, ...]


def read_lesson(name: str, text: str) -> Lesson:
    """The lesson of a TOML file.

    Args:
        name: of the file, without its ending.

    Raises:
        LessonError: the file is not such a lesson.
    """
    file = f"{name}.toml"
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # its message ends with line and column
        raise LessonError(f"{file} is not TOML: {error}. Correct that line.") from error
    _check(file, table, _OF_LESSON, ())
    if not 0 < table["minutes"] < 1000:
        raise LessonError(f"{file}: minutes is {table['minutes']}; write a whole number from 1 to 999.")
    steps = [_step(f"{file}, step {number}", step) for number, step in enumerate(table["steps"], start=1)]
    if not 0 < len(steps) < 100:
        raise LessonError(f"{file} has {len(steps)} steps; write from 1 to 99 tables [[steps]].")
    return Lesson(
        name=name,
        title=table["title"],
        minutes=table["minutes"],
        purpose=table["purpose"],
        steps=tuple(steps),
    )


def _step(where: str, table: Any) -> Step:
    if not isinstance(table, dict):
        raise LessonError(f"{where} is “{table}”; write it as a table [[steps]].")
    _check(where, table, _OF_STEP, _MAY_BE)
    if ("question" in table) != ("answer" in table):
        raise LessonError(f"{where} has only one of question and answer; write both, or neither.")
    parts = urlsplit(table["link"])
    address = parts.path.rstrip("/").rpartition("/")[2]
    page = next((page for page in pages() if page.address == address), None)
    if page is None:
        raise LessonError(
            f"{where}: the link leads to a page “{address}”, which does not exist; copy the address of a page."
        )
    params = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in ("lesson", "lesson_step", PARAMETER):
        params.pop(name, None)  # from an address copied while a lesson ran, or in presentation mode
    for name, value in params.items():
        if name not in FIELDS:
            raise LessonError(
                f"{where}: the link has “{name}”, which no page knows; remove it, or see docs/links.md."
            )
        try:
            _, remark = FIELDS[name].read(name, value)
        except LinkError as error:
            remark = str(error)
        if remark:
            raise LessonError(
                f"{where}: the link has {name}={value}, which does not fit; see docs/links.md for what does."
            )
    return Step(
        page=page, params=params, **{name: table[name] for name in ("see", *_MAY_BE) if name in table}
    )


def _check(where: str, table: dict[str, Any], needed: Mapping[str, type], optional: tuple[str, ...]) -> None:
    for name in table:
        if name not in needed and name not in optional:
            raise LessonError(
                f"{where} has “{name}”; it can have {', '.join((*needed, *optional))}. Remove it, or correct its name."
            )
    kinds: dict[str, type] = {**needed, **dict.fromkeys(optional, str)}
    for name, kind in kinds.items():
        if name not in table:
            if name in needed:
                raise LessonError(f"{where} has no {name}; add it.")
            continue
        words = {str: "text in quotation marks", int: "a whole number", list: "tables [[steps]]"}[kind]
        value: Any = table[name]
        if type(value) is not kind or (isinstance(value, str) and not 0 < len(value.strip()) <= _LONGEST):
            raise LessonError(f"{where}: {name} is “{str(value)[:60]}”; write {words}.")


def all_lessons() -> tuple[list[Lesson], list[str]]:
    """The lessons of attnviz and of the operator's folder, and a sentence for every unusable file."""
    lessons, problems = {}, []
    for folder in (BUNDLED, *([] if LESSONS == "none" else [Path(LESSONS)])):
        if not folder.is_dir():
            problems.append(
                f"ATTNVIZ_LESSONS is “{folder}”, which is not a folder; name a folder with .toml files."
            )
        for file in sorted(folder.glob("*.toml")):
            try:
                lessons[file.stem] = read_lesson(file.stem, file.read_text(encoding="utf-8"))
            except LessonError as error:
                problems.append(str(error))
            except (OSError, UnicodeDecodeError):
                problems.append(f"{file.name} cannot be read as UTF-8 text; save it as that.")
    rank = {name: at for at, name in enumerate(ORDER)}
    return sorted(lessons.values(), key=lambda lesson: rank.get(lesson.name, len(rank))), problems
