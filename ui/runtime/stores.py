"""Everything that is kept for longer than a page's run, each with a limit; a test compares README's table with it.

`ui.runtime.metrics` reports the size of the stores that can fill up; the rest is small, or exists once per visitor.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ui.limits import CACHE_MB, JOBS_MB, MODELS_MB, UPLOADS_MB
from ui.runtime import jobs, uploads
from ui.runtime.remembered import MODELS, NUMBERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One store."""

    name: str
    holds: str
    """What it holds, in README's words."""
    variable: str
    """The environment variable of its limit."""
    megabytes: int
    n_bytes: Callable[[], float]
    n_entries: Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """Something kept outside the stores, since its number and size are bounded otherwise."""

    holds: str
    most: str
    by: str
    """What bounds it, in README's words."""
    where: tuple[str, ...] = ()
    """Caches of the code, as `file:function`."""


KEPT = (
    Kept(
        name="results",
        holds="what was computed from texts: traces, matrices, maps, verdicts",
        variable="ATTNVIZ_CACHE_MB",
        megabytes=CACHE_MB,
        n_bytes=lambda: NUMBERS.n_bytes,
        n_entries=lambda: NUMBERS.n_entries,
    ),
    Kept(
        name="models",
        holds="loaded models, in the server and once more in each worker process",
        variable="ATTNVIZ_MODELS_MB",
        megabytes=MODELS_MB,
        n_bytes=lambda: MODELS.n_bytes,
        n_entries=lambda: MODELS.n_entries,
    ),
    Kept(
        name="jobs",
        holds="results of jobs that no visitor waits for any more",
        variable="ATTNVIZ_JOBS_MB",
        megabytes=JOBS_MB,
        n_bytes=lambda: jobs.state().kept_bytes,
        n_entries=lambda: jobs.state().n_kept,
    ),
    Kept(
        name="uploads",
        holds="uploaded files until they are read, opened bundles, and texts of visitors' own files",
        variable="ATTNVIZ_UPLOADS_MB",
        megabytes=UPLOADS_MB,
        n_bytes=uploads.n_bytes,
        n_entries=uploads.n_entries,
    ),
)

BOUNDED = (
    Bounded(
        holds="for each open page, what its buttons under “Export” need: its trace and matrices",
        most="15 MB for 512 tokens and all-MiniLM-L6-v2, 58 MB for bert-base-uncased, and 2 MB a matrix",
        by="`ATTNVIZ_PEOPLE`, `ATTNVIZ_TOKENS`",
    ),
    Bounded(
        holds="for each visitor who has left, what they had chosen, and sentences of their own, in case they come back",
        most="1 MB each, of 128 visitors for 2 minutes",
        by="`STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL` (seconds)",
    ),
    Bounded(
        holds="colour scales, names of the fields of records and of types, folders and versions of the bundled models, sizes of the models on offer and their downloads, which methods of maps are compiled, attention classes of families, what is compared of a folder while its model is loaded",
        most="1 MB",
        by="how many there are",
        where=(
            "attnviz/arguments.py:_imported_for_types",
            "attnviz/figures/heatmap.py:_scale",
            "attnviz/figures/theme.py:_tone",
            "attnviz/viewer/codes.py:_forms_of_codes",
            "attnviz/viewer/codes.py:_table",
            "attnviz/viewer/page.py:own_file",
            "attnviz/model/agreement.py:added",
            "attnviz/model/agreement.py:config",
            "attnviz/model/agreement.py:entries",
            "attnviz/model/agreement.py:own",
            "attnviz/model/agreement.py:settings",
            "attnviz/maps/ranking.py:_make_ready",
            "attnviz/model/catalogue.py:_folder_of",
            "attnviz/model/catalogue.py:_version",
            "attnviz/model/own_attention.py:_taken_over",
            "attnviz/model/reference.py:_listening",
            "ui/runtime/memory.py:_field_names",
            "ui/shell/downloads.py:_downloads",
            "ui/shell/downloads.py:_size",
        ),
    ),
    Bounded(
        holds="with each matrix the labels of its rows and columns, with each page what follows from its choices",
        most="10 KB for 512 tokens",
        by="how many of them are kept",
        where=(
            "attnviz/records/tokens.py:axes",
            "attnviz/records/tokens.py:is_merged",
            "attnviz/records/tokens.py:is_special",
            "attnviz/records/tokens.py:labels",
            "attnviz/records/tokens.py:positions",
            "attnviz/records/tokens.py:segment",
            "ui/choice/selection.py:source",
            "ui/shell/view.py:_axes",
            "ui/shell/view.py:hides_first",
            "ui/shell/view.py:hides_special",
            "ui/shell/view.py:key_tokens",
            "ui/shell/view.py:query_tokens",
            "ui/rooms/explore/stage/screen.py:finding",
            "ui/rooms/explore/stage/screen.py:headline",
            "ui/rooms/explore/stage/screen.py:special_note",
        ),
    ),
    Bounded(
        holds="profiles of many texts that were looked at last: the numbers and names of every head",
        most="5 MB each, of 8",
        by="how many there are",
        where=("ui/runtime/profiles.py:_read", "ui/runtime/profiles.py:names"),
    ),
    Bounded(
        holds="which model and texts each profile on the server is of",
        most="1 MB",
        by="256 profiles",
        where=("ui/runtime/profiles.py:_listed",),
    ),
    Bounded(
        holds="indices of many texts that were looked at last; their vectors stay on disk",
        most="1 MB each, of 8",
        by="how many there are",
        where=("ui/rooms/many_texts/find_tokens.py:_read",),
    ),
    Bounded(
        holds="while the command `attnviz corpus` runs, its model; no server has it",
        most="what the model takes",
        by="one model",
        where=("attnviz/corpus/pipeline.py:_loaded",),
    ),
    Bounded(
        holds="in each worker process, the trace of 100 random tokens of the model whose heads were looked at last",
        most="3 MB for all-MiniLM-L6-v2, 12 MB for SmolLM2-135M-Instruct",
        by="one model",
        where=("ui/runtime/probes.py:_first_text",),
    ),
)


def table() -> list[str]:
    """README's table."""
    return [
        "| what is kept | at most | by |",
        "|---|---|---|",
        *(
            f"| `{store.name}`: {store.holds} | {store.megabytes:,} MB | `{store.variable}` |"
            for store in KEPT
        ),
        *(f"| {store.holds} | {store.most} | {store.by} |" for store in BOUNDED),
    ]


if __name__ == "__main__":
    print(*table(), sep="\n")
