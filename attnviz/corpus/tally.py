"""The counts of a corpus so far, kept on disk so that a run can resume.

The tally does not depend on the order in which texts come: sums are float64, the sample is the texts with the
smallest hashes, and the strongest examples have the largest activations of all.
"""

import json
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt64

from attnviz.corpus.columns import ACTIVATION, COLUMNS, MEANS, PLACES, QUERY
from attnviz.corpus.disk import no_room_on
from attnviz.corpus.labels import Labels
from attnviz.corpus.measuring import TextNumbers
from attnviz.corpus.relations import DIRECTIONS
from attnviz.corpus.sums import Sums, text_hash
from attnviz.errors import CorpusError

N_SAMPLE = 1000
"""Texts of the sample, the source of examples by decile and of pairs of tokens and parts of speech."""
N_STRONGEST = 10
"""Texts that are kept for each head's largest activations."""
FARTHEST = 10
"""Largest offset from a word that is tried as the best fixed one."""
_FILE = "tally.npz"
_SHOWN = (ACTIVATION, QUERY)
_OF_SUMS = ("totals", "counts", "texts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A text that was read and measured."""

    text: str
    labels: Labels | None
    n_token: int
    numbers: TextNumbers


@dataclass(slots=True, kw_only=True)
class Checks:
    """Results of the batches that were verified."""

    n_text: int = 0
    n_passed: int = 0
    worst_error: float = 0.0
    """Largest difference of a weight from the model's own."""
    worst_difference: float = 0.0
    """Largest difference of a statistic from that of the text's own trace."""

    def add(self, other: "Checks") -> None:
        """Adds the results of other texts."""
        self.n_text += other.n_text
        self.n_passed += other.n_passed
        self.worst_error = max(self.worst_error, other.worst_error)
        self.worst_difference = max(self.worst_difference, other.worst_difference)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What has been counted of the first ``n_entry`` texts of a corpus."""

    about: dict[str, Any]
    """What is being profiled; a tally of something else is refused."""
    n_head: int
    n_entry: int = 0
    """Texts taken from the files, whether read or failed."""
    n_text: int = 0
    """Texts that were measured; a long one counts as several."""
    n_token: int = 0
    n_failed: int = 0
    means: Sums = field(init=False)
    places: Sums = field(init=False)
    relations: dict[str, Sums] = field(default_factory=dict)
    """By relation, the words that each head finds in each direction."""
    offsets: dict[str, Counter[int]] = field(default_factory=dict)
    """By relation, counts of how many words away the word is that another depends on; positive to the right."""
    sample: UInt64[np.ndarray, " text"] = field(init=False)
    """Hashes, in ascending order."""
    sample_shown: Float[np.ndarray, "text head shown"] = field(init=False)
    strongest: UInt64[np.ndarray, "head rank"] = field(init=False)
    strongest_shown: Float[np.ndarray, "head rank shown"] = field(init=False)
    """Minus infinity where there are fewer."""
    texts: dict[int, str] = field(default_factory=dict)
    """Texts of the sample and of the strongest examples, by hash."""
    labels: dict[int, str] = field(default_factory=dict)
    checks: Checks = field(default_factory=Checks)

    def __post_init__(self) -> None:
        self.means = Sums.none(self.n_head, len(MEANS))
        self.places = Sums.none(self.n_head, len(PLACES), n_group=1)
        self.sample = np.zeros(0, dtype=np.uint64)
        self.sample_shown = np.zeros((0, self.n_head, len(_SHOWN)), dtype=np.float32)
        self.strongest = np.zeros((self.n_head, N_STRONGEST), dtype=np.uint64)
        self.strongest_shown = np.full((self.n_head, N_STRONGEST, len(_SHOWN)), -np.inf, dtype=np.float32)

    def add(self, measured: Sequence[Measured]) -> None:
        """Adds texts."""
        if not measured:
            return
        hashes = [text_hash(text.text) for text in measured]
        numbers = np.stack([text.numbers.numbers for text in measured])  # [text, head, column]
        self.means.add(numbers[..., _places(MEANS)], hashes)
        self.places.add(numbers[..., _places(PLACES)], hashes)
        self.n_text += len(measured)
        self.n_token += sum(text.n_token for text in measured)
        for text, hash_ in zip(measured, hashes, strict=True):
            self._add_relations(text, hash_)
        shown = numbers[..., _places(_SHOWN)]
        known = dict(zip(hashes, measured, strict=True))
        self._draw_sample(np.array(hashes, dtype=np.uint64), shown)
        self._keep_strongest(np.array(hashes, dtype=np.uint64), shown)
        kept = {*self.sample.tolist(), *self.strongest.ravel().tolist()}
        self.texts = {
            hash_: self.texts[hash_] if hash_ in self.texts else known[hash_].text
            for hash_ in kept
            if hash_ in self.texts or hash_ in known
        }
        self.labels = {hash_: text for hash_, text in self.labels.items() if hash_ in kept}
        for hash_ in kept & known.keys():
            labels = known[hash_].labels
            if labels is not None:
                self.labels[hash_] = labels.written()

    def _add_relations(self, text: Measured, hash_: int) -> None:
        for name, count in text.numbers.n_words.items():
            if name not in self.relations:
                self.relations[name] = Sums.none(self.n_head, len(DIRECTIONS), of_words=True)
                self.offsets[name] = Counter()
            self.relations[name].add(text.numbers.n_found[name][None], [hash_], [count])
        if text.labels is not None:
            for word, (head, name) in enumerate(
                zip(text.labels.heads.tolist(), text.labels.relations, strict=True)
            ):
                if head >= 0 and name in self.offsets and abs(head - word) <= FARTHEST:
                    self.offsets[name][head - word] += 1

    def _draw_sample(
        self, hashes: UInt64[np.ndarray, " text"], shown: Float[np.ndarray, "text head shown"]
    ) -> None:
        every = np.concatenate([self.sample, hashes])
        whole = np.concatenate([self.sample_shown, shown])
        self.sample, first = np.unique(every, return_index=True)
        self.sample = self.sample[:N_SAMPLE]
        self.sample_shown = whole[first[:N_SAMPLE]]

    def _keep_strongest(
        self, hashes: UInt64[np.ndarray, " text"], shown: Float[np.ndarray, "text head shown"]
    ) -> None:
        """Keeps the largest activations of each head, each text once; ties go to the smaller hash."""
        by_head = np.where(np.isnan(shown), -np.inf, shown).transpose(1, 0, 2)  # [head, text, shown]
        whole = np.concatenate([self.strongest_shown, by_head], axis=1)
        every = np.concatenate([self.strongest, np.broadcast_to(hashes, (self.n_head, len(hashes)))], axis=1)
        for head in range(self.n_head):
            order = np.lexsort((every[head], -whole[head, :, 0]))
            _, first = np.unique(every[head, order], return_index=True)
            kept = order[np.sort(first)][:N_STRONGEST]
            kept = kept[np.isfinite(whole[head, kept, 0])]
            self.strongest[head] = 0
            self.strongest_shown[head] = -np.inf
            self.strongest[head, : len(kept)] = every[head, kept]
            self.strongest_shown[head, : len(kept)] = whole[head, kept]

    def save(self, folder: Path) -> None:
        """Writes the tally; the previous one stays until the new one is complete.

        Raises:
            CorpusError: no room on the disk.
        """
        arrays = {
            "sample": self.sample,
            "sample_shown": self.sample_shown,
            "strongest": self.strongest,
            "strongest_shown": self.strongest_shown,
        }
        names = sorted(self.relations)
        every = {"means": self.means, "places": self.places}
        every |= {f"relation_{number}": self.relations[name] for number, name in enumerate(names)}
        for of, sums in every.items():
            arrays |= {f"{of}_{array}": getattr(sums, array) for array in _OF_SUMS}
        rest = {
            "about": self.about,
            "n_head": self.n_head,
            "n_entry": self.n_entry,
            "n_text": self.n_text,
            "n_token": self.n_token,
            "n_failed": self.n_failed,
            "relations": names,
            "offsets": {name: list(self.offsets[name].items()) for name in names},
            "texts": list(self.texts.items()),
            "labels": list(self.labels.items()),
            "checks": [
                self.checks.n_text,
                self.checks.n_passed,
                self.checks.worst_error,
                self.checks.worst_difference,
            ],
        }
        arrays["rest"] = np.frombuffer(json.dumps(rest).encode(), dtype=np.uint8)
        written = folder / f"{_FILE}.part"
        with no_room_on(folder):
            with written.open("wb") as opened:
                np.savez(opened, **arrays)  # type: ignore[arg-type]
            os.replace(written, folder / _FILE)

    def forget(self, folder: Path) -> None:
        """Deletes the tally in a folder."""
        (folder / _FILE).unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: Path) -> "Tally | None":
        """The tally in a folder; None where there is none.

        Raises:
            CorpusError: the file is damaged.
        """
        path = folder / _FILE
        if not path.exists():
            return None
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
                rest = json.loads(bytes(arrays["rest"]))
                tally = cls(about=rest["about"], n_head=rest["n_head"])
                for name in ("n_entry", "n_text", "n_token", "n_failed"):
                    setattr(tally, name, rest[name])

                def read(of: str) -> Sums:
                    return Sums(*(arrays[f"{of}_{array}"] for array in _OF_SUMS))

                tally.means, tally.places = read("means"), read("places")
                for name in ("sample", "sample_shown", "strongest", "strongest_shown"):
                    setattr(tally, name, arrays[name])
                for number, name in enumerate(rest["relations"]):
                    tally.relations[name] = read(f"relation_{number}")
                    tally.offsets[name] = Counter(dict(rest["offsets"][name]))
                tally.texts, tally.labels = dict(rest["texts"]), dict(rest["labels"])
                n_text, n_passed, error, difference = rest["checks"]
                tally.checks = Checks(
                    n_text=n_text, n_passed=n_passed, worst_error=error, worst_difference=difference
                )
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
            raise CorpusError(
                f"{path} is not what attnviz wrote there, or another version wrote it, so the run cannot go on. Delete it to begin anew."
            ) from error
        return tally


def _places(names: Iterable[str]) -> list[int]:
    return [COLUMNS.index(name) for name in names]
