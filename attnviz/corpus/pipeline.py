"""A profile made of a corpus: Daft runs the model over a shard of texts at a time, in this process or on a Ray cluster."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.arguments import typed
from attnviz.corpus.columns import COLUMNS, MEASURED
from attnviz.corpus.labels import Labels
from attnviz.corpus.measuring import Read, TextNumbers, measured
from attnviz.corpus.profile import HEADS, Profile, read_profile
from attnviz.corpus.running import Checks, Folder, Progress, Reader, about_run, labeller, run, run_in_memory
from attnviz.corpus.tally import N_SAMPLE, N_STRONGEST, Measured, Tally
from attnviz.corpus.texts import Entry, Failure, find_files
from attnviz.corpus.writing import write_profile
from attnviz.errors import CorpusError
from attnviz.heads.head_statistics import statistics_on
from attnviz.records import Progress as Share

if TYPE_CHECKING:
    from attnviz.model.model import Model

_N_PARTITION = 16
"""Parts of a shard on a cluster, each as long as a shard elsewhere and run by the next free worker."""

Found = list[Measured] | str
"""What was measured of a text's windows, or why it failed."""
Measure = Callable[[Sequence[Entry], Sequence[bool]], list[Found]]
"""A function that measures texts, and verifies some."""


@typed
def profile_corpus(
    given: Sequence[str | Path] | str | Path,
    model: str | None,
    out: str | Path,
    *,
    column: str | None = None,
    label: str | None = None,
    ray: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Profile:
    """Measures every head of a model on the texts of some files, and writes the profile into a folder.

    A run that was stopped resumes when called again with the same arguments.

    Args:
        given: files, folders or patterns; see `attnviz.corpus.texts.find_files`.
        model: as `attnviz.load_model`.
        out: created if missing.
        column: of tables, the one with the texts; "text" when None.
        label: "spacy", or the name of a spaCy pipeline, to label texts that have no labels; None for those of CoNLL-U alone.
        ray: address of a Ray cluster; None for this process, unless the environment says ``DAFT_RUNNER=ray``.
        progress: called after each shard.

    Raises:
        ArgumentError: an argument of another type.
        CorpusError: no text can be read, the folder holds something else, no room is left, or Daft, Ray or spaCy is missing.
        ModelNotAvailableError, UnsupportedArchitectureError: as `attnviz.load_model`.
    """
    files, label_texts = find_files(given), labeller(label)
    n_part = _N_PARTITION if ray is not None or os.environ.get("DAFT_RUNNER") == "ray" else 1
    measure = _on_daft(model, ray, n_part)
    measurer = _OfHeads(_loaded(model), label, measure)  # after what is told at once if it is not installed
    return run(
        measurer, files, Path(out), column=column, label_texts=label_texts, progress=progress, n_part=n_part
    )


@typed
def profile(texts: Iterable[str], model: "Model", *, progress: Share | None = None) -> Profile:
    """What every head of a model does over some texts, in this process; `profile_corpus` measures files of any size.

    Args:
        texts: any number; one that cannot be read is counted in ``n_failed`` and left out.
        progress: called with the share that is done, 0 to 1; it may raise to stop.

    Raises:
        As `profile_texts`.
    """
    measured, _ = profile_texts(model, list(texts), progress=progress or (lambda _: None))
    return measured


@typed
def profile_texts(
    model: "Model", entries: Sequence[str | Entry | Failure], *, progress: Share = lambda _: None
) -> tuple[Profile, list[Failure]]:
    """As `profile_corpus`, for texts in this process, without Daft or anything left on disk; and the failures.

    Args:
        entries: texts, or entries that also hold where a text comes from.
        progress: called with the share that is done, 0 to 1; it may raise to stop.

    Raises:
        ArgumentError: an argument of another type.
        CorpusError: no text can be read.
        ModelFailedError, OutOfMemoryError: as `Model.trace`.
    """
    measurer = _OfHeads(model, None, Measuring(model).measure)
    n_text = sum(not isinstance(entry, Failure) for entry in entries)
    n_again = min(n_text, N_SAMPLE + N_STRONGEST * measurer.counts.n_head)  # read once more for the examples
    measuring = n_text / max(1, n_text + n_again)
    return run_in_memory(measurer, entries, progress=progress, measuring=measuring)


class _OfHeads:
    """A measurer of every head."""

    name, others, mark = "profile", "profile of other texts", HEADS

    def __init__(self, model: "Model", label: str | None, measure: Measure) -> None:
        self._model, self._measure = model, measure
        self.about = about_run(model, label)
        probe = model.probe()
        self.counts = Tally(n_head=sum(len(probe.heads(kind)) for kind in probe.kinds))

    def measure(self, texts: Sequence[Entry], verify: Sequence[bool], _: Folder) -> dict[int, str]:
        found = self._measure(texts, verify)
        self.counts.add([text for of_text in found if not isinstance(of_text, str) for text in of_text])
        return {number: reason for number, reason in enumerate(found) if isinstance(reason, str)}

    def write(self, folder: Folder, progress: Share) -> None:
        write_profile(self._model, self.counts, folder.out, progress=progress)

    def read(self, out: Path) -> Profile:
        return read_profile(out)


class Measuring:
    """Measures texts with a model, some at a time."""

    def __init__(self, model: "Model") -> None:
        self._model, self._reader = model, Reader(model)

    def measure(self, texts: Sequence[Entry], verify: Sequence[bool]) -> list[Found]:
        """What was measured of each text, or why it failed."""
        reasons: dict[int, str] = {}
        results: list[list[Measured]] = [[] for _ in texts]
        for batch, numbers, is_verified in self._reader.batches(
            texts,
            verify,
            lambda some: measured(
                self._model, [text.read for text in some], COLUMNS, [text.labels for text in some]
            ),
            reasons,
        ):
            checks = [Checks() for _ in batch]
            if is_verified:
                checks = verified(self._model, [text.read for text in batch], numbers)
            for text, of_text, of_check in zip(batch, numbers, checks, strict=True):
                results[text.number].append(
                    Measured(
                        text=text.text,
                        labels=text.labels,
                        n_token=len(text.read[0]),
                        numbers=of_text,
                        checks=of_check,
                    )
                )
        return [reasons.get(number, result) for number, result in enumerate(results)]


def verified(model: "Model", texts: Sequence[Read], numbers: Sequence[TextNumbers]) -> list[Checks]:
    """The texts of a batch compared with the model's own attention, and their statistics with those of their traces."""
    from attnviz.model.verification import verify

    checks = []
    for trace, of_text in zip(model.trace_texts(texts), numbers, strict=True):
        report = verify(model, trace)
        worst, row = 0.0, 0
        for kind in trace.kinds:
            tables = statistics_on(trace, kind, *trace.axes(kind), names=MEASURED)
            heads = trace.heads(kind)
            for name, table in tables.items():
                expected = np.array([table[head] for head in heads])
                ours = of_text.numbers[row : row + len(heads), COLUMNS.index(name)]
                worst = max(worst, float(np.nanmax(np.abs(ours - expected), initial=0.0)))
            row += len(heads)
        checks.append(Checks.of(report, worst))
    return checks


@lru_cache(maxsize=1)
def _loaded(name: str | None) -> "Model":
    """The model, loaded once per process: Daft creates new workers for each shard."""
    from attnviz.model.loading import load_model

    return load_model(name)


def _on_daft(model: str | None, ray: str | None, n_part: int) -> Measure:
    """A function that measures texts by Daft, in so many parts."""
    try:
        import daft
    except ImportError as error:
        raise CorpusError(
            'Daft is needed for a corpus and is not installed. Run pip install "attnviz[corpus]".'
        ) from error
    if ray is not None:
        try:
            daft.set_runner_ray(ray)
        except ImportError as error:
            raise CorpusError(
                "Ray is needed for a cluster and is not installed. Run pip install ray."
            ) from error

    # Daft's own choice of processes would load the model once more in the middle of a run.
    @daft.cls(use_process=None if n_part > 1 else False, max_concurrency=None if n_part > 1 else 1)
    class OnDaft(Measuring):
        """The model in a worker of Daft."""

        def __init__(self, name: str | None) -> None:
            super().__init__(_loaded(name))

        @daft.method.batch(return_dtype=daft.DataType.python())
        def batch(self, texts: Any, labels: Any, verify: Any) -> Any:
            entries = [
                Entry(source="", place=0, text=text, labels=Labels.read(written) if written else None)
                for text, written in zip(texts.to_pylist(), labels.to_pylist(), strict=True)
            ]
            found = self.measure(entries, verify.to_pylist())
            return daft.Series.from_pylist(found, dtype=daft.DataType.python())

    worker: Any = OnDaft(model)

    def measure(entries: Sequence[Entry], verify: Sequence[bool]) -> list[Found]:
        if not entries:
            return []
        # batches of about one length
        order = sorted(range(len(entries)), key=lambda number: len(entries[number].text))
        labels = [entries[number].labels for number in order]
        table = daft.from_pydict(
            {
                "number": order,
                "text": [entries[number].text for number in order],
                "labels": ["" if label is None else label.written() for label in labels],
                "verify": [verify[number] for number in order],
            }
        )
        if n_part > 1:
            table = table.into_partitions(n_part)
        found = worker.batch(table["text"], table["labels"], table["verify"]).alias("found")
        results = table.select("number", found).to_pydict()
        by_number = dict(zip(results["number"], results["found"], strict=True))
        return [by_number[number] for number in range(len(entries))]

    return measure
