"""What is counted of a corpus for a profile.

The tally does not depend on the order in which texts come: sums are float64, the sample is the texts with the
smallest hashes, and the strongest examples have the largest activations of all.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, UInt64

from attnviz.corpus.columns import ACTIVATION, COLUMNS, DIRECTIONS, MEANS, PLACES, QUERY
from attnviz.corpus.labels import Labels
from attnviz.corpus.measuring import TextNumbers
from attnviz.corpus.running import Checks, Counts
from attnviz.corpus.sums import Sums, text_hash

N_SAMPLE = 1000
"""Texts of the sample, the source of examples by decile and of pairs of tokens and parts of speech."""
N_STRONGEST = 10
"""Texts that are kept for each head's largest activations."""
FARTHEST = 10
"""Largest offset from a word that is tried as the best fixed one."""
_SHOWN = (ACTIVATION, QUERY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A text that was read and measured."""

    text: str
    labels: Labels | None
    n_token: int
    numbers: TextNumbers
    checks: Checks = field(default_factory=Checks)


@dataclass(kw_only=True)
class Tally(Counts):
    """What has been counted of the texts of a corpus, for a profile."""

    n_head: int
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
            self.checks.add(text.checks)
            self._add_relations(text, hash_)
        shown = numbers[..., _places(_SHOWN)]
        known = dict(zip(hashes, measured, strict=True))
        self._draw_sample(np.array(hashes, dtype=np.uint64), shown)
        self._keep_strongest(np.array(hashes, dtype=np.uint64), shown)
        kept = {*self.sample.tolist(), *self.strongest.ravel().tolist()}
        new = {hash_: known[hash_] for hash_ in kept & known.keys()}
        texts = {hash_: text.text for hash_, text in new.items()} | self.texts
        labels = self.labels | {
            h: text.labels.written() for h, text in new.items() if text.labels is not None
        }
        self.texts, self.labels = (
            {hash_: of_text for hash_, of_text in every.items() if hash_ in kept} for every in (texts, labels)
        )

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

    def restore(self, saved: dict[str, Any]) -> None:
        """As `Counts.restore`."""
        super().restore(saved)
        self.means, self.places = Sums(**saved["means"]), Sums(**saved["places"])
        self.relations = {name: Sums(**sums) for name, sums in saved["relations"].items()}
        self.offsets = {
            name: Counter({int(step): n for step, n in counts.items()})
            for name, counts in saved["offsets"].items()
        }
        for name in ("texts", "labels"):
            setattr(self, name, {int(hash_): text for hash_, text in saved[name].items()})


def _places(names: Iterable[str]) -> list[int]:
    return [COLUMNS.index(name) for name in names]
