"""Two attention matrices on common axes, cell by cell.

A is the first pattern and B the second; a difference is B minus A. numpy only.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.arguments import typed
from attnviz.errors import SelectionError
from attnviz.records import AttentionPattern, Axis, Record, Result, bare
from attnviz.records.table import Table, entry_names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alignment(Record):
    """The entries of two axes in one order, with corresponding entries joined into one."""

    first: Axis
    second: Axis
    pairs: Int[np.ndarray, "entry 2"]
    """Index of each entry on the first axis and on the second; -1 where an axis does not have the entry."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        for side, axis in enumerate((self.first, self.second)):
            positions = self.pairs[self.pairs[:, side] >= 0, side].tolist()
            if positions != list(range(len(axis))):
                raise self._unfit(f"{len(axis)} entries in order are not {positions} of the pairs")

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def is_paired(self) -> Bool[np.ndarray, " entry"]:
        """True for entries that both axes have."""
        return np.asarray((self.pairs >= 0).all(axis=1))

    def has(self, side: int) -> Bool[np.ndarray, " entry"]:
        """True for entries that the first axis (side 0) or the second (side 1) has."""
        return np.asarray(self.pairs[:, side] >= 0)

    @property
    def segment(self) -> Int[np.ndarray, " entry"]:
        """0 for entries of the first text of a pair and 1 for those of the second; A's value where A has the entry."""
        here, there = np.append(self.first.segment, 0), np.append(self.second.segment, 0)
        return np.asarray(np.where(self.has(0), here[self.pairs[:, 0]], there[self.pairs[:, 1]]))

    def index(self, position: int) -> int | None:
        """The entry that a token of the first axis belongs to; None where the token is not shown."""
        entry = self.first.index(position)
        return None if entry is None else int(np.flatnonzero(self.pairs[:, 0] == entry)[0])

    def part(self, first: int, stop: int) -> "Alignment":
        """The entries from ``first`` up to ``stop`` as an alignment of the axes' parts; ``stop`` is not included."""
        pairs = self.pairs[first:stop]
        before = (self.pairs[:first] >= 0).sum(axis=0)  # entries of each axis before the part
        axes = []
        for side, axis in enumerate((self.first, self.second)):
            is_in = np.isin(np.arange(len(axis)), pairs[:, side])
            axes.append(axis.where(is_in))
        return Alignment(first=axes[0], second=axes[1], pairs=np.where(pairs < 0, -1, pairs - before))

    def positions(self, side: int) -> Int[np.ndarray, " entry"]:
        """Position of each entry's first token on the first axis (side 0) or the second (side 1); -1 where that axis has none."""
        axis = (self.first, self.second)[side]
        return np.asarray(np.append(axis.positions, -1)[self.pairs[:, side]])


def align(first: Axis, second: Axis) -> Alignment:
    """Two axes aligned: entries with equal labels (those before masking, without spaces) are paired in order.

    A stretch in which all labels differ is paired entry by entry if it has the same length on both axes, so that a
    replaced word is one entry. In any other stretch no entries are paired: those of the first axis come first,
    then those of the second.

    Source: equal stretches as `difflib.SequenceMatcher` of Python's library finds them, the longest first
    (Ratcliff and Metzener 1988, "Pattern Matching: The Gestalt Approach", Dr. Dobb's Journal 13).
    """
    of_first, of_second = (list(map(bare, _unmasked(axis))) for axis in (first, second))
    matcher = SequenceMatcher(a=of_first, b=of_second, autojunk=False)
    pairs: list[tuple[int, int]] = []
    for _, start, stop, other_start, other_stop in matcher.get_opcodes():
        here, there = range(start, stop), range(other_start, other_stop)
        if len(here) == len(there):
            pairs += zip(here, there, strict=True)
        else:
            pairs += [*((query, -1) for query in here), *((-1, key) for key in there)]
    return Alignment(first=first, second=second, pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change(Record):
    """One cell that both matrices have; query and key are entries of the common axes."""

    query: int
    key: int
    first: float
    second: float

    @property
    def difference(self) -> float:
        """B minus A."""
        return self.second - self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """The keys that only one of two patterns has."""

    n_keys: int
    share: float
    """Sum of a row over these keys, mean over the queries of that pattern."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison(Result):
    """Two patterns on common axes. A cell is NaN where a pattern does not have it, or its query may not see its key."""

    first: AttentionPattern
    second: AttentionPattern
    queries: Alignment
    keys: Alignment
    first_weights: Float[np.ndarray, "query key"]
    second_weights: Float[np.ndarray, "query key"]
    difference: Float[np.ndarray, "query key"]
    """B minus A; NaN where A or B does not have the cell, or both mask it. A cell that only one pattern masks
    has weight 0 there."""
    row_change: Float[np.ndarray, " query"]
    """Share of its attention that a query distributes differently, 0 to 1 while no key is hidden: half the sum of the
    absolute differences, where a key that only one pattern has counts as weight 0 in the other. NaN for a query that
    only one pattern has. For norm-based weights the same sum, which has no upper limit.

    Source: total variation distance; Levin, Peres and Wilmer 2009, "Markov Chains and Mixing Times",
    proposition 4.2.
    """

    def _table(self) -> Table:
        """A row for each cell: query and key in A and in B, the number in each, and B minus A; empty where a pattern does not have it."""
        queries, keys = (
            [[*entry_names(axis), ""] for axis in (alignment.first, alignment.second)]
            for alignment in (self.queries, self.keys)
        )
        rows: list[list[object]] = []
        for row, query in enumerate(self.queries.pairs):
            of_query = [side[at] for side, at in zip(queries, query, strict=True)]
            for column, key in enumerate(self.keys.pairs):
                of_key = [side[at] for side, at in zip(keys, key, strict=True)]
                cells = (
                    matrix[row, column]
                    for matrix in (self.first_weights, self.second_weights, self.difference)
                )
                rows.append([*of_query, *of_key, *("" if np.isnan(cell) else cell for cell in cells)])
        return ["query A", "query B", "key A", "key B", "A", "B", "B - A"], rows

    def largest(self, count: int) -> tuple[Change, ...]:
        """The cells that differ most, the largest difference first; equal cells are left out."""
        sizes = np.abs(np.nan_to_num(self.difference)).ravel()
        order = np.argsort(-sizes, kind="stable")[:count]
        return tuple(self.change(*divmod(int(cell), len(self.keys))) for cell in order[sizes[order] > 0])

    def change(self, query: int, key: int) -> Change:
        """One cell; a masked cell counts as weight 0.

        Raises:
            SelectionError: one of the patterns does not have this cell.
        """
        if not (self.queries.is_paired[query] and self.keys.is_paired[key]):
            raise SelectionError(
                f"The change in row {query}, column {key} was asked for; one of the two matrices does not "
                "have that cell. Select a cell that both have."
            )
        first, second = (
            float(np.nan_to_num(weights[query, key])) for weights in (self.first_weights, self.second_weights)
        )
        return Change(query=query, key=key, first=first, second=second)

    def around(self, query: int, key: int, length: int) -> "Comparison":
        """The part with at most ``length`` entries per side around one pair of entries, kept within the edges."""
        rows, columns = _stretch(query, length, len(self.queries)), _stretch(key, length, len(self.keys))
        return replace(
            self,
            queries=self.queries.part(*rows),
            keys=self.keys.part(*columns),
            first_weights=self.first_weights[slice(*rows), slice(*columns)],
            second_weights=self.second_weights[slice(*rows), slice(*columns)],
            difference=self.difference[slice(*rows), slice(*columns)],
            row_change=self.row_change[slice(*rows)],
        )

    @property
    def is_same(self) -> bool:
        """Whether both patterns have the same entries and the same numbers in all cells."""
        return bool(
            self.queries.is_paired.all()
            and self.keys.is_paired.all()
            and not np.nan_to_num(self.difference).any()
        )

    @property
    def unpaired(self) -> tuple["Unpaired", "Unpaired"]:
        """The keys of A that B does not have, and those of B that A does not have."""
        first, second = (
            Unpaired(
                n_keys=int(self.keys.has(side).sum() - self.keys.is_paired.sum()),
                share=float(
                    np.nan_to_num(cells)[self.queries.has(side)][:, ~self.keys.is_paired].sum(axis=1).mean()
                ),
            )
            for side, cells in enumerate((self.first_weights, self.second_weights))
        )
        return first, second

    @property
    def rows_are_whole(self) -> bool:
        """Whether no row of either pattern has weight on hidden keys, so that its shown weights sum to 1."""
        return not (self.first.hidden_weight.any() or self.second.hidden_weight.any()) or (
            self.first.is_renormalised and self.second.is_renormalised
        )

    @property
    def splits_differ(self) -> bool:
        """Whether A and B split the same text into different tokens, as models with different tokenizers do."""
        return any(_split_differs(changed.first, changed.second) for changed in (self.queries, self.keys))


def pair_positions(first: Axis, second: Axis) -> Alignment:
    """Two axes whose entries are paired in order from the first, whatever their labels: two texts with the same beginning."""
    n_pair, n_entry = sorted((len(first), len(second)))
    longer = 0 if len(first) == n_entry else 1
    pairs = np.tile(np.arange(n_entry, dtype=np.int64)[:, None], 2)
    pairs[n_pair:, 1 - longer] = -1
    return Alignment(first=first, second=second, pairs=pairs)


@typed
def compare(
    first: AttentionPattern, second: AttentionPattern, *, pairing: Callable[[Axis, Axis], Alignment] = align
) -> Comparison:
    """Two patterns on common axes, and their difference: `second` minus `first`.

    Layers, heads, models and texts may all differ.

    Args:
        pairing: which entries of two axes correspond, `align` or `pair_positions`.

    Raises:
        SelectionError: the cells of the two hold different measures.
    """
    if first.measure != second.measure:
        raise SelectionError(
            f"A comparison of {first.measure} with {second.measure} was asked for; the two measures cannot be "
            "compared. Select the same measure for both."
        )
    queries = pairing(first.queries, second.queries)
    # Aligning takes most of the time for repetitive texts, so equal axes are aligned once.
    is_same = all(
        pattern.queries.tokens is pattern.keys.tokens
        and np.array_equal(pattern.queries.spans, pattern.keys.spans)
        for pattern in (first, second)
    )
    keys = queries if is_same else pairing(first.keys, second.keys)
    sides = [_laid_out(pattern, queries, keys, side) for side, pattern in enumerate((first, second))]
    known = [np.nan_to_num(side) for side in sides]
    whole = known[1] - known[0]
    both_have = queries.is_paired[:, None] & keys.is_paired
    is_empty = np.isnan(sides[0]) & np.isnan(sides[1])
    change = np.abs(whole).sum(axis=1, dtype=np.float32) / 2
    return Comparison(
        first=first,
        second=second,
        queries=queries,
        keys=keys,
        first_weights=sides[0],
        second_weights=sides[1],
        difference=np.where(both_have & ~is_empty, whole, np.float32(np.nan)),
        row_change=np.where(queries.is_paired, change, np.float32(np.nan)),
    )


def _laid_out(pattern: AttentionPattern, queries: Alignment, keys: Alignment, side: int) -> np.ndarray:
    """One pattern's weights [query, key] on the common axes."""
    weights = np.full((len(queries), len(keys)), np.nan, dtype=np.float32)
    cells = np.where(pattern.allowed, pattern.weights, np.float32(np.nan))
    weights[np.ix_(queries.has(side), keys.has(side))] = cells
    return weights


def _stretch(middle: int, length: int, n_entries: int) -> tuple[int, int]:
    """First entry of a stretch around an entry, and the entry after the last."""
    first = max(0, min(middle - length // 2, n_entries - length))
    return first, min(first + length, n_entries)


def _split_differs(first: Axis, second: Axis) -> bool:
    texts = [(axis.tokens.text, axis.tokens.text_pair, axis.tokens.n_cut) for axis in (first, second)]
    pieces = [_unmasked(Axis.of(axis.tokens)) for axis in (first, second)]
    return texts[0] == texts[1] and pieces[0] != pieces[1]


def _unmasked(axis: Axis) -> tuple[str, ...]:
    """Labels of an axis as they were before tokens were masked."""
    tokens = axis.tokens
    labels = tuple(tokens.masked.get(position, label) for position, label in enumerate(tokens.labels))
    pieces = (
        tokens.masked[position].removeprefix("##") if position in tokens.masked else tokens.piece(position)
        for position in range(len(tokens))
    )
    return replace(axis, tokens=replace(tokens, labels=labels, pieces=tuple(pieces))).labels
