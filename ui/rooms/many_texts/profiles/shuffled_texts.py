"""In which heads the picture matters: one row of each head in each of the first texts, shuffled among its keys."""

from functools import partial, reduce

import streamlit as st

from attnviz.effects.over_pairs import of_line
from attnviz.effects.row_shuffle import PREDICTION
from attnviz.effects.rows_over_texts import LONGEST, MeanShuffledHeads, mean_shuffled_heads
from attnviz.figures.numbers import counted, number_text, spread_text
from attnviz.model.catalogue import offer
from attnviz.records import Head
from ui.rooms.many_texts.own_corpora import corpus_name
from ui.rooms.many_texts.profiles.measured_heads import MOST_TEXTS, Screen
from ui.runtime import with_model
from ui.runtime.jobs import TELLS_PROGRESS, Job, job
from ui.shell.heads import heads_and_largest
from ui.shell.waiting import Request, is_there
from ui.words.literal import literal

KEY = "profile_shuffled"
N_RANKED = 8


def shuffled_texts(screen: Screen) -> tuple[str, ...]:
    """All heads, each with its mean change, and which stand out; nothing without texts, and a button until asked for."""
    if not _can_run(screen):
        return ()
    st.subheader("Does it matter where heads look?", anchor=False)
    work, in_texts = _job(screen), f"in {counted(len(screen.texts), 'text')}"

    def so_far() -> None:
        if (found := _joined(work)) is not None:
            _grid(screen, found, work)

    if not is_there(
        work,
        None,
        f"Shuffling a row of each head {in_texts}",
        key="profile_shuffled_act",
        request=Request(label=f"Shuffle a row of each head {in_texts}", key=_key(screen)),
        result=so_far,
    ):
        return ()
    so_far()
    if refused := [result for result in work.results if isinstance(result, str)]:
        st.caption(literal(f"{counted(len(refused), 'text')} left out. {refused[0]}"))
    return (KEY,) if found_changes(screen) is not None else ()


def found_changes(screen: Screen) -> MeanShuffledHeads | None:
    """The changes in all texts; None until they are known."""
    if not _can_run(screen):
        return None
    work = _job(screen)
    return _joined(work) if work.finished else None


def _can_run(screen: Screen) -> bool:
    """Whether the texts are there, and the model's prediction or last states are those of their queries."""
    is_read_alone = screen.kind != "encoder" or len(screen.profile.kinds) == 1
    return bool(screen.texts) and is_read_alone and not screen.view.selection.bundle


def _key(screen: Screen) -> tuple[object, ...]:
    return screen.view.selection.model, screen.kind, tuple(entry.text for entry in screen.texts)


def _job(screen: Screen) -> Job:
    """A call for each text, so that the mean so far is drawn."""
    model, experiment = (
        offer(screen.view.selection.model).name,
        partial(mean_shuffled_heads, kind=screen.kind),
    )
    return job(
        "shuffled_texts",
        _key(screen),
        lambda: [
            (with_model.call, (of_line, model, entry.place, experiment, [entry.text]), TELLS_PROGRESS)
            for entry in screen.texts
        ],
    )


def _joined(work: Job) -> MeanShuffledHeads | None:
    """The changes in the texts so far; None before the first."""
    parts = [result for result in work.results if isinstance(result, MeanShuffledHeads)]
    return reduce(MeanShuffledHeads.joined, parts) if parts else None


def _grid(screen: Screen, found: MeanShuffledHeads, work: Job) -> None:
    heads_and_largest(
        screen.view,
        found.heads,
        lambda head: _said(found, head),
        found.ranked()[:N_RANKED],
        lambda head: _mean_text(found, head),
        names=(
            "Mean change while a row of each head is shuffled; select a head",
            "Heads whose rows matter most; select one",
        ),
        key=KEY,
        short=True,  # the spread needs room
        notes=[_note(screen, found, work)],
        heads=screen.heads,
    )


def _mean_text(found: MeanShuffledHeads, head: Head) -> str:
    return f"{number_text(float(found.heads[head]))}{spread_text(float(found.spread[head]))}"


def _said(found: MeanShuffledHeads, head: Head) -> str:
    n_text = int(found.n_texts[head])
    if not n_text:
        return f"{head.title}: all keys of its rows have the same weight, so that shuffling tells nothing"
    return f"{head.title}: mean change {_mean_text(found, head)}, {counted(n_text, 'text')}"


def _note(screen: Screen, found: MeanShuffledHeads, work: Job) -> str:
    """What the numbers are, and over which texts."""
    so_far = "" if work.finished else f" of {len(work.results)}, so far"
    if found.outcome.startswith(PREDICTION):
        change = "how much of the next token’s probability moves"
    else:
        change = "how far its last hidden state turns (1 − cosine)"
    return (
        f"In each text a token is drawn; the number is {change} while the head’s row of this token is shuffled among its keys, the median of "
        f"{counted(found.n_shuffles, 'order')} (after Jain and Wallace 2019, arXiv:1902.10186). Mean over {counted(len(found.changes), 'text')}{so_far}, "
        f"± standard deviation. Texts: {corpus_name(screen.corpus)}, at most the first {MOST_TEXTS}, each cut at {LONGEST} tokens."
    )
