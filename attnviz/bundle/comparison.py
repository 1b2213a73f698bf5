"""A bundle compared with the model: its text is run again with the same weights on this machine."""

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.bundle.bundle import Bundle
from attnviz.bundle.changes import changes_in_words
from attnviz.errors import AttnvizError, VerificationError
from attnviz.figures.numbers import counted
from attnviz.maths import attribution
from attnviz.maths.rounding import dot_bound
from attnviz.model.trace import Trace
from attnviz.model.verification import NORMS, verify
from attnviz.records import Check, Kind, Tokens, VerificationReport, head_table

if TYPE_CHECKING:
    from attnviz.model.model import Model

_TOKENS = "The tokenizer reads the text again and gives the same ids, words, segments and special tokens."
_PRODUCTS = (
    "Norm-based weights of all heads together need dot products of v W_O of two heads, which a bundle holds: their float32 "
    "roundings."
)


@typed
def compare_bundle(bundle: Bundle, model: "Model") -> VerificationReport:
    """Every number of a bundle compared with the model's own, after the model has read the bundle's text again.

    Like `attnviz.verify`, but the reference runs on the tokens that the model's tokenizer makes of the text, whatever
    tokens the bundle holds. Everything else in the file is compared too: words, segments and special tokens, what was cut
    and masked, and the dot products behind norm-based weights of all heads together.

    Raises:
        VerificationError: the run had interventions; the SHA-256 of the model's weights differs from the bundle's; or the text
            gives other tokens, layers or heads here, so that the numbers cannot be compared.
    """
    check_unchanged(bundle)
    check_weights(bundle, model)
    recorded = bundle.trace
    expected = _read_again(bundle, model)
    _check_axes(recorded, expected)
    tokens = replace(expected.tokens, labels=recorded.tokens.labels, pieces=recorded.tokens.pieces)
    target = None
    if expected.target_tokens is not None and recorded.target_tokens is not None:
        target = replace(
            expected.target_tokens, labels=recorded.target_tokens.labels, pieces=recorded.target_tokens.pieces
        )
    report = verify(model, replace(recorded, tokens=tokens, target_tokens=target))
    checks = []
    for check in report.checks:
        if check.name == "tokens":
            check = replace(check, differences=_wrong_tokens(recorded, expected), reason=_TOKENS)
        elif check.name == NORMS:
            check = _with_products(check, recorded, model)
        checks.append(check)
    return replace(report, checks=tuple(checks), provenance=model.provenance)


def check_unchanged(bundle: Bundle) -> None:
    """Raises VerificationError where the run of a bundle had interventions."""
    if changed := bundle.trace.interventions:
        raise VerificationError(
            f"The run in this bundle was changed ({changes_in_words(changed)}), so it cannot be compared with the model's own. "
            "Make a bundle of the same text without interventions."
        )


def check_weights(bundle: Bundle, model: "Model") -> None:
    """Raises VerificationError unless the SHA-256 of the bundle's weights is that of this model's."""
    recorded, here = dict(bundle.weights_sha256), dict(model.weights_sha256)
    if not recorded:
        raise VerificationError(
            f"This bundle was to be compared with {model.name}; it does not say which weights it was made with. Export it "
            "again with weights_sha256=model.weights_sha256."
        )
    if recorded != here:
        source = bundle.trace.provenance
        raise VerificationError(
            f"The model here has other weights (SHA-256 differs): the bundle was made with {_digests(recorded)}, "
            f"{model.name} has {_digests(here)}. Load revision {source.revision} of {source.model}."
        )


def _digests(digests: dict[str, str]) -> str:
    if not digests:
        return "no weights"
    name, digest = min(digests.items())
    rest = f" and {counted(len(digests) - 1, 'more file')}" if len(digests) > 1 else ""
    return f"{name} {digest[:12]}…{rest}"


def _read_again(bundle: Bundle, model: "Model") -> Trace:
    """The trace that the model makes of the bundle's text."""
    tokens, target = bundle.trace.tokens, bundle.trace.target_tokens
    texts = [tokens] if target is None else [tokens, target]
    is_cut = any(any(text.n_cut) for text in texts)
    try:
        if tokens.template == "messages" or tokens.template == "ids":
            return model.trace_tokens(tokens, target)
        return model.trace(
            tokens.text,
            tokens.text_pair if target is None else target.text or None,
            cut=is_cut,
            max_tokens=max(map(len, texts)) if is_cut else None,
            masked=sorted(tokens.masked),
            source_language=tokens.language,
            template=tokens.template,
            target_language=None if target is None else target.language,
        )
    except AttnvizError as error:
        raise VerificationError(
            f"{model.name} cannot read the text of this bundle with the settings that the bundle records: {error}"
        ) from error


def _check_axes(trace: Trace, expected: Trace) -> None:
    """Raises VerificationError where the bundle's numbers have no counterpart in the model's."""
    ours, theirs = _axes(trace), _axes(expected)
    if ours != theirs:
        different = next(name for name in theirs | ours if theirs.get(name) != ours.get(name))
        raise VerificationError(
            f"The bundle cannot be compared with {expected.provenance.model}: {different}, "
            f"{ours.get(different, 'none')} in the bundle and {theirs.get(different, 'none')} for its text here. Close the "
            "bundle to see what the model computes."
        )


def _axes(trace: Trace) -> dict[str, object]:
    """The properties that two traces of one text share, by name."""
    texts = {"tokens": trace.tokens, "tokens of the decoder": trace.target_tokens}
    lengths: dict[str, object] = {name: len(tokens) for name, tokens in texts.items() if tokens is not None}
    for kind in trace.kinds:
        calls = trace.layers[kind]
        lengths[f"layers of {kind} attention"] = len(calls)
        for call in calls:
            lengths[f"queries, keys and values of {kind} layer {call.layer}"] = (
                *(call.query.shape, call.key.shape, call.value.shape),
            )
        lengths[f"norm-based weights of {kind} attention"] = (
            "some" if "norms" in trace.measures(kind) else "none"
        )
    lengths["last hidden state"] = trace.last_hidden_state.shape
    return lengths


def _wrong_tokens(trace: Trace, expected: Trace) -> dict[Kind, Float[np.ndarray, "1 1"]]:
    """The number of tokens that differ from the text's; labels are not compared here."""
    count = _wrong(trace.tokens, expected.tokens)
    if trace.target_tokens is not None and expected.target_tokens is not None:
        count += _wrong(trace.target_tokens, expected.target_tokens)
    return {expected.kinds[0]: np.array([[count]], dtype=np.float32)}


def _wrong(tokens: Tokens, expected: Tokens) -> int:
    wrong = np.zeros(len(expected), dtype=bool)
    for name in ("ids", "word", "segment", "is_special", "is_unknown"):
        wrong |= getattr(tokens, name) != getattr(expected, name)
    for position in {**tokens.masked, **expected.masked}:
        wrong[position] |= tokens.masked.get(position) != expected.masked.get(position)
    cut = sum(abs(left - other) for left, other in zip_longest(tokens.n_cut, expected.n_cut, fillvalue=0))
    return int(wrong.sum()) + cut + (tokens.text_pair != expected.text_pair)


def _with_products(check: Check, trace: Trace, model: "Model") -> Check:
    """The check of norm-based weights, extended to those of all heads together: for every head the worse of the two."""
    differences, tolerances = dict(check.differences), dict(check.tolerances)
    for kind in check.differences:
        pairs = [_products(trace, model, kind, layer) for layer in range(trace.n_layers(kind))]
        drifts, allowed = (head_table(layers) for layers in zip(*pairs, strict=True))
        # as shares of their tolerances; nothing is worse than NaN
        is_worse = ~(drifts * tolerances[kind] <= differences[kind] * allowed) & ~np.isnan(differences[kind])
        differences[kind] = np.where(is_worse, drifts, differences[kind])
        tolerances[kind] = np.where(is_worse, allowed, tolerances[kind])
    return replace(
        check, differences=differences, tolerances=tolerances, reason=f"{check.reason} {_PRODUCTS}"
    )


def _products(
    trace: Trace, model: "Model", kind: Kind, layer: int
) -> tuple[Float[np.ndarray, " head"], Float[np.ndarray, " head"]]:
    """For each head, how far its dot products with all heads differ at most from those with the model's W_O, and the tolerance.

    Both are shares of the longest vectors' product. A dot product of v W_O and u W_O, as float32 computes it, is within
    ``gamma`` of ``2 d_value + d_model`` roundings times |v| |W_O| |u| |W_O| of the exact one, twice for two of them.

    Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", 2nd edition, equation 3.5, twice.
    """
    weight, value = model.output_maps[kind][layer].weight, trace.attention(layer, kind).value
    n_head, d_value, d_model = weight.shape
    expected = attribution.value_products(value, weight)
    apart = np.abs(trace.value_products(layer, kind) - expected).max(axis=(1, 2))
    lengths = attribution.lengths_of(expected).max(axis=1)
    values = np.repeat(np.linalg.norm(value, axis=2).max(axis=1), n_head // len(value))
    largest = values * np.linalg.norm(weight, axis=(1, 2))
    allowed = 2 * dot_bound(2 * d_value + d_model) * largest * largest.max()
    longest = np.maximum(lengths * lengths.max(), np.finfo(np.float32).tiny)
    return apart / longest, allowed / longest
