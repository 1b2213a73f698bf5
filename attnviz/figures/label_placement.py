"""Where the labels of a map and the numbers of a row go: without overlap, and hidden where there is no room."""

import numpy as np
from jaxtyping import Bool, Float

CHARACTER, LINE = 7.3, 15.0  # px, width of a character of the token font at 12 px
SIDES = {  # offset of a label's middle from its point, in label sizes
    "top center": np.array([0.0, 1.0]),
    "bottom center": np.array([0.0, -1.0]),
    "middle right": np.array([0.6, 0.0]),
    "middle left": np.array([-0.6, 0.0]),
    "top right": np.array([0.6, 0.9]),
    "top left": np.array([-0.6, 0.9]),
    "bottom right": np.array([0.6, -0.9]),
    "bottom left": np.array([-0.6, -0.9]),
}
_NUMBERS = 8  # numbers that fit side by side on a phone
_FAINT = 0.05  # share of the largest number of a row; smaller ones are only in hover texts
_PASSES = 3  # passes over all labels
_MOST_COVERED = 0.02  # share of a label that other labels may cover


def written_numbers(row: Float[np.ndarray, " place"], *, first: int | None = None) -> list[int]:
    """The places of a row whose numbers are written: ``first``, then the largest, where a phone has room beside the others."""
    room = -(-len(row) // _NUMBERS)
    large = [int(key) for key in np.argsort(-row, kind="stable") if row[key] >= _FAINT * row.max(initial=0.0)]
    written: list[int] = []
    for place in [*([] if first is None else [first]), *large]:
        if all(abs(place - other) >= room for other in written):
            written.append(place)
    return written


def place_labels(
    points: Float[np.ndarray, "point 2"], texts: list[str], is_named: Bool[np.ndarray, " point"], height: int
) -> tuple[list[str], list[str], Float[np.ndarray, "2"], Float[np.ndarray, "2"], Float[np.ndarray, "box 4"]]:
    """Labels that have room, the side of each, the corners of a map that holds them all, and the boxes of points and labels.

    Sides are chosen label by label, each with the least overlap with what is placed already, and then again with all
    others in place. A label that still overlaps another is hidden, unless it is named: overlapping labels cannot be
    read, but a hidden label is in the hover text.
    """
    scale = (height - 120) / max(float(np.ptp(points, axis=0).max()), 1e-9)  # px; a map is about that wide
    centres = points.astype(np.float64) * scale
    dots = np.column_stack([centres, np.full_like(centres, 14.0)])  # x, y, width, height
    numbers = [number for number, text in enumerate(texts) if text]
    sizes = np.array([[CHARACTER * len(texts[number]) + 8, LINE] for number in numbers]).reshape(-1, 2)
    boxes = _boxes(centres[numbers], sizes)  # of each label on every side
    chosen = dict(zip(numbers, _least_overlap(boxes, dots), strict=True))
    options = dict(zip(numbers, boxes, strict=True))
    for number in _crowded({other: options[other][side] for other, side in chosen.items()}, is_named):
        del chosen[number]
    texts = [text if number in chosen else "" for number, text in enumerate(texts)]
    taken = np.vstack([dots, *(options[number][side] for number, side in chosen.items())])
    lowest = (taken[:, :2] - taken[:, 2:] / 2).min(axis=0) / scale
    highest = (taken[:, :2] + taken[:, 2:] / 2).max(axis=0) / scale
    sides = [list(SIDES)[chosen.get(number, 0)] for number in range(len(texts))]
    return texts, sides, lowest, highest, taken / scale


def _boxes(
    centres: Float[np.ndarray, "label 2"], sizes: Float[np.ndarray, "label 2"]
) -> Float[np.ndarray, "label side 4"]:
    """Where each label is on every side of its point: middle and size."""
    shifts = np.array(list(SIDES.values()))
    middles = centres[:, None] + shifts * (sizes + np.array([10, 1]))[:, None]
    return np.concatenate([middles, np.broadcast_to(sizes[:, None], middles.shape)], axis=2)


def _least_overlap(boxes: Float[np.ndarray, "label side 4"], dots: Float[np.ndarray, "point 4"]) -> list[int]:
    """The side of each label that shares the least area with points and with the labels that are already placed."""
    n_label, n_side, _ = boxes.shape
    on_dots = overlap(boxes.reshape(-1, 4), dots).reshape(n_label, n_side)
    lowest, highest = boxes[..., :2] - 0.5 * boxes[..., 2:], boxes[..., :2] + 0.5 * boxes[..., 2:]
    placed = np.zeros((n_label, n_label, n_side))  # area that a label, where it is now, shares with others
    sides = [-1] * n_label
    for _ in range(_PASSES):
        before = list(sides)
        for label in range(n_label):
            side = int((on_dots[label] + placed[:, label].sum(axis=0)).argmin())
            if side != sides[label]:
                sides[label] = side
                shared = np.minimum(highest, highest[label, side]) - np.maximum(lowest, lowest[label, side])
                np.maximum(shared, 0, out=shared)
                placed[label] = shared[..., 0] * shared[..., 1]
                placed[label, label] = 0
        if sides == before:
            break
    return sides


def _crowded(boxes: dict[int, np.ndarray], is_named: Bool[np.ndarray, " point"]) -> list[int]:
    """Labels to hide, those with the most overlap first, until the rest can be read."""
    numbers, placed = list(boxes), np.array(list(boxes.values()))
    if not numbers:
        return []
    covered = shared_areas(placed, placed) / placed[:, 2:].prod(axis=1)  # share of a column's label
    np.fill_diagonal(covered, 0)
    covered = np.maximum(covered, covered.T)
    left_out: list[int] = []
    while True:
        unreadable = (covered.max(axis=1) > _MOST_COVERED) & ~is_named[numbers]
        if not unreadable.any():
            return left_out
        worst = int(np.where(unreadable, covered.sum(axis=1), 0).argmax())
        left_out.append(numbers[worst])
        covered[worst] = covered[:, worst] = 0


def overlap(
    boxes: Float[np.ndarray, "side 4"], others: Float[np.ndarray, "box 4"]
) -> Float[np.ndarray, " side"]:
    """Area that each box shares with the other boxes."""
    area: Float[np.ndarray, " side"] = shared_areas(boxes, others).sum(axis=1)
    return area


def shared_areas(
    boxes: Float[np.ndarray, "side 4"], others: Float[np.ndarray, "box 4"]
) -> Float[np.ndarray, "side box"]:
    """Area that each box shares with each of the others; all are middle and size."""
    (lowest, other_lowest), (highest, other_highest) = (
        [each[:, :2] + share * each[:, 2:] for each in (boxes, others)] for share in (-0.5, 0.5)
    )
    areas = np.ones((len(boxes), len(others)))
    for axis in (0, 1):
        shared = np.minimum.outer(highest[:, axis], other_highest[:, axis])
        shared -= np.maximum.outer(lowest[:, axis], other_lowest[:, axis])
        areas *= np.maximum(shared, 0, out=shared)
    return areas
