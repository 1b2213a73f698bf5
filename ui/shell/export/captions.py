"""The caption of an exported picture: text, model, head, the meaning of colours or lines, the reliability of a map.

Plain text; nothing on screen changes.
"""

import attnviz
from attnviz.figures.labels import isolated
from attnviz.figures.layer_grid import runs_across
from attnviz.figures.patching import DIFFERS
from attnviz.records import visible
from ui.shell.view import View
from ui.words.findings import measure_text

_NUMBERS = {
    "weights": "attention weight",
    "scores": "attention score",
    "norms": "norm-based weight",
    "rollout": "rollout",
}
_WEIGHT = "cell colour: attention weight"
_LINES = "line thickness: attention weight"
_SIGNED = "cell colour: number, one tone below 0 and one above"
_SIMILARITY = "cell colour: cosine similarity of two positions; framed: the positions of the text"
_PATH = "the two main directions of the position vectors; marked: the positions of the text"
_SPREAD = "bar height: density of scores, without the scale above and with it below"
_SHARPNESS = "solid line: the selected row; dashed line: random vectors"
_CLAIMS = ("claim_symmetric", "claim_diagonal", "claim_full", "claim_contribution")
_COST = "both axes logarithmic; a line for each way to compute attention"
_GAP = "bar length: probability of each candidate for the gap, from the text before, the text after, and both"
_AROUND = {"begin": "begin-of-text token added", "chat": "in the chat template"}
"""What was added around the text."""


def caption(view: View, key: str, name: str, about: str = "", note: str = "") -> list[str]:
    """The paragraphs below a picture: the text, then the picture's source and what it shows.

    Args:
        key: of the picture's element.
        name: of the picture.
        about: what else it shows, such as the other side of a comparison.
        note: how a map was made and how reliable it is.
    """
    tokens, target = view.trace.tokens, view.trace.target_tokens
    second = target.text if target else tokens.text_pair
    text = " / ".join(plain(text) for text in (tokens.text, second) if text)
    masked = ", ".join(f"“{plain(label)}” (token {at})" for at, label in tokens.masked.items())
    selection = view.selection
    parts = [
        name,
        view.trace.provenance.model,
        " to ".join(
            tokens_of_text.language
            for tokens_of_text in (tokens, target)
            if tokens_of_text and tokens_of_text.language
        ),
        _AROUND.get(tokens.template, ""),
        f"layer {selection.layer}, head {selection.head}",
        f"masked: {masked}" if masked else "",
        meaning(view, key),
        about,
        note.rstrip("."),
        f"attnviz {attnviz.__version__}",
    ]
    return [f"“{text}”", " · ".join(plain(part) for part in parts if part)]


def meaning(view: View, key: str) -> str:
    """What colour, length, thickness or position means in the picture with this key; empty for an unknown key."""
    if key in _CLAIMS:
        is_across = runs_across(view.trace.n_layers(view.kind))
        axes = "across: its layer; up: its number" if is_across else "across: its number; down: its layer"
        return f"a point for each head; {axes}"
    selection = view.selection
    number = _NUMBERS[selection.show]
    logarithmic = ", logarithmic" * (selection.colour == "logarithmic" and selection.show != "scores")
    measured = _NUMBERS[view.measure]
    end = view.colour_end(view.pattern()) if key == "matrix" else None
    ends = "" if end is None else f", colours end at {measure_text(end, view.measure)}"
    return {
        "matrix": f"cell colour: {number}{logarithmic}{ends}",
        "ranking": f"bar length: {measured} of the query “{isolated(view.query_tokens.labels[view.query])}”",
        "map": _LINES,
        "space_map": _LINES,
        "token_flow": f"line thickness: {measured}",
        "compare_first": f"cell colour: {measured}",
        "compare_second": f"cell colour: {measured}",
        "compare_difference": f"cell colour: {measured} of B minus that of A",
        "head_grid": f"cells: {measured} of each head",
        "head_map": "close points: heads with similar attention; tone: layer",
        "map_grid": f"{_LINES} of each head",
        "joint_map": "circles: queries; diamonds: keys",
        "profile_heads": "a point for each head: means over many texts, of two models by the depth of the layer",
        "score_sources": "cell colour: part of the score, by where the query comes from (down) and the key (across)",
        "pair": "bar height: number of each dimension of query, key and their product",
        "door_map": _LINES,
        "door_map_other": f"{_LINES} of another query",
        **{f"gap_{number}": _GAP for number in range(3)},
        "errors": "cell colour: largest difference from the model's attention weights",
        "mask_before": _WEIGHT,
        "mask_after": _WEIGHT,
        "mask_graph": "arrow from key to query; its thickness: attention weight",
        "mask_effect": "bar height: change of each token's last hidden state by the mask, 1 − cosine",
        "history_one_vector": _LINES,
        "history_weights": "bar height: weight of each key, by each way of scoring",
        "history_contexts": _SIGNED,
        "head_film": _SIGNED,
        **{f"step_part_{step}": _SIGNED for step in range(2, 9)},
        "spread_random": _SPREAD,
        "spread_model": _SPREAD,
        **{f"sharp_{number}": _SHARPNESS for number in ("entropy", "largest", "jacobian")},
        **{f"cost_{counted}": _COST for counted in ("counted", "seconds", "bytes")},
        "learned_table": _SIGNED,
        "sines_table": _SIGNED,
        "learned_likeness": _SIMILARITY,
        "sines_likeness": _SIMILARITY,
        "learned_path": _PATH,
        "sines_path": _PATH,
        "shift_matrix": _SIGNED,
        "effects_grid": "cells: outcome without each head minus outcome of the unchanged run",
        "effects_greedy": "line: outcome while more and more heads are off",
        "effects_removal": "lines: outcome while more and more heads are off; dotted line: none is off",
        "effects_cells": "a point for each cell; across: its weight; up: size of the effect of masking it",
        "effects_ablations": "a point for each head; dotted line: equal effects",
        "lens_grid": "cell colour: probability of the most likely token after each layer, or similarity with the last state",
        "lens_followed": "lines: the chosen tokens after each layer, by logit difference, probability and rank",
        "lens_heads": "cells: what each head adds to the answer directly",
        "lens_layer_parts": "bar height: what the embedding, and the heads and the MLP of each layer, add to the answer directly",
        "inputs_sheet": "cell colour: what a token adds to the outcome, each column on a scale of its own",
        "inputs_deletion": "lines: outcome while tokens are removed, most important first; band: 90% of random orders",
        "written_matrix": _WEIGHT,
        "branches_first": _WEIGHT,
        "branches_second": _WEIGHT,
        "branches_difference": f"{_WEIGHT} of B minus that of A",
        "patching_shares": f"cell colour: share of the difference in outcome, or its change where no difference can be shared; {DIFFERS}: the sentences differ",
        "patching_gradient": f"cell colour: the same to first order, gradient × difference of the states; {DIFFERS}: the sentences differ",
        "shuffled_with": "bar height: change of each token's last hidden state by another order, 1 − cosine",
    }.get(key, "")


def plain(text: str) -> str:
    """Text on one line, with the code in place of each invisible character."""
    return visible(" ".join(text.split()))
