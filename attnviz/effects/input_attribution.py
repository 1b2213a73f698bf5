"""How much each token of a text counts for an outcome, by several methods, which disagree.

Which method is right for a text is measured in `attnviz.effects.deletion`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from attnviz.arguments import typed
from attnviz.effects.alti_logit import alti_logit
from attnviz.effects.attribution_methods import METHODS, AttributionMethod, titled
from attnviz.effects.context_mixing import alti, value_zeroing
from attnviz.effects.decompx import decompx, missing
from attnviz.effects.logit_attribution import has_linear_head
from attnviz.effects.outcome import (
    AnyOutcome,
    ClassAnswer,
    Outcome,
    TokenAnswer,
    TokenState,
    measured,
    outcome_from,
    refuse_no_gradient,
    unchanged,
)
from attnviz.effects.shapley import N_PERMUTATIONS, ShapleySample, sample_shapley
from attnviz.effects.token_embeddings import Baseline, EmbeddedText
from attnviz.effects.token_removal import TokenRemoval, outcomes_without
from attnviz.errors import SelectionError
from attnviz.maths import gradients
from attnviz.maths.attention_flow import attention_flow
from attnviz.maths.gradients import PathIntegral
from attnviz.model.variants import OutcomeMeasure
from attnviz.records import Axis, Kind, Progress, Result, Tokens, progress_within
from attnviz.records.table import Table, entry_names

if TYPE_CHECKING:
    from torch import Tensor

    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

SMALLEST_SHARE = 1e-4
"""Gradient x input is left out where its largest value is below this share of integrated gradients' largest: rounding."""

FLOW_TOKENS = 256
"""Longest text, in tokens, for which flow to one token is computed; half as many for flow to all tokens. On one core, with
6 layers, flow to one token takes 3 ms for 12 tokens, 0.2 s for 128 and 6 s for 256."""

_OF_GRADIENTS = frozenset({"gradient_times_input", "integrated_gradients"})
_OF_PARTS = frozenset({"decompx", "alti_logit", "alti", "value_zeroing"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputAttribution(Result):
    """One number for each token of the text, by one method."""

    method: AttributionMethod
    tokens: Tokens
    values: Float[np.ndarray, " token"]
    """If signed, what the token adds to the outcome, in its unit. Norm-based weights are lengths; rollout and flow are
    shares of 1."""
    baseline: str | None = None
    """The token that stands for no token, such as "[PAD]", or "zeros"; None where a method needs none."""
    integral: PathIntegral | None = None
    """For integrated gradients: how well they sum to the outcome of the text minus that of the baseline. In a mixture
    of experts the outcome jumps where a token changes its expert, and no number of points closes the gap."""
    sample: ShapleySample | None = None
    """For Shapley values: what each token changes in each permutation, and so the standard errors."""
    rest: float | None = None
    """For ALTI-Logit what MLPs and biases add, which belongs to no token; for DecompX 0. With the sum over the tokens it is the
    model's own number: the outcome, or the logit where the outcome is a probability; where it is the change of a state, DecompX's is
    the length of the state with a minus, for what a token gives to the state lowers the change."""
    passed: bool | None = None
    """For DecompX, ALTI-Logit, ALTI and value zeroing: whether the parts give the model's own numbers back; None for other methods."""

    def _table(self) -> Table:
        """A row for each token, with the standard error where there is one."""
        names = entry_names(Axis.of(self.tokens))
        columns = _columns(self)
        rows = zip(range(len(names)), names, *columns.values(), strict=True)
        return ["position", "token", *columns], [*map(list, rows)]

    @property
    def sum(self) -> float:
        """The sum over all tokens."""
        return float(self.values.sum(dtype=np.float64))

    def joined(self, other: "InputAttribution") -> "InputAttribution":
        """Integrated gradients over this part of the path and another, or Shapley values of these permutations and others."""
        if self.sample is not None and other.sample is not None:
            return _of_sample(self.sample.joined(other.sample), self.tokens, self.baseline)
        assert self.integral is not None and other.integral is not None  # no other method has parts
        return _of_integral(self.integral.joined(other.integral), self.tokens, self.baseline)

    @property
    def has_sign(self) -> bool:
        """Whether a token may lower the outcome; weights say only how much is read."""
        return METHODS[self.method].has_sign

    @property
    def converged(self) -> bool:
        """Whether the numbers are what the method defines.

        False for integrated gradients whose error is above `attnviz.maths.gradients.TOLERANCE`, and for parts that do not give the
        model's own numbers back. Shapley values state their `ShapleySample.standard_errors` instead.
        """
        return self.passed is not False and (self.integral is None or self.integral.converged)

    @property
    def title(self) -> str:
        """The method's name, with what is against it."""
        return titled(METHODS[self.method].title, self.converged)

    def order(self, among: Bool[np.ndarray, " token"], direction: int = 1) -> Int[np.ndarray, " step"]:
        """Positions of some tokens, most important first; of equals the earlier one first.

        Args:
            among: the tokens that are ordered.
            direction: 1 where important tokens raise the outcome, -1 where they lower it.
        """
        values = self.values * direction if self.has_sign else self.values
        positions = np.flatnonzero(among)
        return np.asarray(positions[np.argsort(-values[positions], kind="stable")], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attributions(Result):
    """What each token of a text gives to an outcome, by each of several methods."""

    tokens: Tokens
    methods: tuple[InputAttribution, ...]

    def __getitem__(self, method: str) -> InputAttribution:
        """The attribution by one method.

        Raises:
            SelectionError: it was not asked for.
        """
        for attribution in self.methods:
            if attribution.method == method:
                return attribution
        there = ", ".join(attribution.method for attribution in self.methods)
        raise SelectionError(f"The method “{method}” was asked for; there are {there}. Select one of those.")

    def _table(self) -> Table:
        """A row for each token, a column for each method."""
        names = entry_names(Axis.of(self.tokens))
        columns = {name: values for by in self.methods for name, values in _columns(by).items()}
        rows = zip(range(len(names)), names, *columns.values(), strict=True)
        return ["position", "token", *columns], [*map(list, rows)]


def _columns(attribution: InputAttribution) -> dict[str, Float[np.ndarray, " token"]]:
    """The columns of a method in a table: its numbers, and their standard errors where it has some."""
    columns = {titled(attribution.method, attribution.converged): attribution.values}
    if attribution.sample is not None:
        columns[f"{attribution.method} (standard error)"] = attribution.sample.standard_errors
    return columns


@typed
def attribute(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    *,
    methods: Sequence[AttributionMethod] | None = None,
    baseline: Baseline | None = None,
    progress: Progress | None = None,
) -> Attributions:
    """What each token of a text gives to an outcome; arguments and errors as `attribute_inputs`."""
    attributions = attribute_inputs(
        model, trace, outcome, methods=methods, baseline=baseline, progress=progress
    )
    return Attributions(tokens=trace.tokens, methods=attributions)


@typed
def available_methods(model: "Model", trace: "Trace", outcome: AnyOutcome) -> tuple[AttributionMethod, ...]:
    """The methods that are defined for this outcome and this model."""
    return tuple(method for method in METHODS if _missing(model, trace, outcome, method) is None)


@typed
@gradients.differentiable()
def attribute_inputs(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    *,
    methods: Sequence[AttributionMethod] | None = None,
    baseline: Baseline | None = None,
    most_points: int = gradients.MOST_POINTS,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
    part: tuple[int, int] = (0, 1),
    progress: Progress | None = None,
) -> tuple[InputAttribution, ...]:
    """An outcome attributed to each token of a text, by several methods.

    For an encoder-decoder model, the tokens are those that the encoder reads; the decoder's text stays. Families that
    normalise each vector right after the lookup, such as ModernBERT, ignore its length: gradient x input is then 0 up
    to rounding for every token, and is left out unless methods are named.

    Args:
        trace: of the text without interventions.
        outcome: as `attnviz.effects.outcome.measured` takes it.
        methods: None for all that are available but Shapley values, which run the text `N_PERMUTATIONS` times as often as
            replacing each token does.
        baseline: what stands for no token; None for the model's own, see `attnviz.effects.token_embeddings.BASELINES`.
        most_points: of integrated gradients, as of `attnviz.maths.gradients.integrated_gradients`.
        n_permutations, seed: of Shapley values, as of `attnviz.effects.shapley.sample_shapley`.
        part: of integrated gradients' path or of Shapley's permutations; parts are `InputAttribution.joined`.
        progress: called with the share that is done, 0 to 1.

    Raises:
        EmptyTextError, TextTooLongError, InvalidTextError: as `measured`.
        CaptureError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        SelectionError: a method that is not available, or a trace with interventions.
        UnsupportedArchitectureError: as `attnviz.effects.token_embeddings.EmbeddedText`.
    """
    measure = measured(model, trace, outcome)
    if isinstance(outcome, str):
        outcome = outcome_from(outcome)
    is_all = methods is None
    if methods is None:
        methods = [method for method in available_methods(model, trace, outcome) if METHODS[method].is_quick]
    chosen = tuple(methods)
    for method in chosen:
        if (reason := _missing(model, trace, outcome, method)) is not None:
            others = ", ".join(available_methods(model, trace, outcome))
            raise SelectionError(f"The method {method!r} was asked for; {reason}. Select one of {others}.")
    text = EmbeddedText(model, trace, baseline)
    unchanged(trace, measure)  # refuses what is no outcome before the run
    if any(method in _OF_GRADIENTS for method in chosen):
        refuse_no_gradient(trace, measure, "name methods without one, such as “token_replaced”")
    attributions = []
    for number, method in enumerate(chosen):
        tell = progress_within(progress, number / len(chosen), 1 / len(chosen))
        if method in ("token_replaced", "keys_masked"):
            attributions.append(
                _leave_out(model, trace, outcome, method, baseline, text.baseline_label, tell)
            )
        elif method == "shapley":
            sample = sample_shapley(
                model,
                trace,
                outcome,
                baseline=baseline,
                n_permutations=n_permutations,
                seed=seed,
                part=part,
                progress=tell,
            )
            attributions.append(_of_sample(sample, trace.tokens, text.baseline_label))
        elif method == "alti_logit":
            assert isinstance(outcome, TokenAnswer)  # otherwise the method is missing
            attributions.append(_of_logit(model, trace, outcome, tell))
        elif method == "decompx":
            assert isinstance(outcome, Outcome)  # otherwise the method is missing
            attributions.append(_of_split(model, trace, outcome, tell))
        elif method in ("alti", "value_zeroing"):
            mixing = (alti if method == "alti" else value_zeroing)(model, trace, progress=tell)
            attributions.append(
                InputAttribution(
                    method=method,
                    tokens=trace.tokens,
                    values=_averaged(mixing.rollout, _rows(trace, outcome, measure)),
                    passed=mixing.passed,
                )
            )
        elif not METHODS[method].has_sign:
            attributions.append(
                InputAttribution(
                    method=method,
                    tokens=trace.tokens,
                    values=_read(trace, _rows(trace, outcome, measure), method, tell),
                )
            )
        else:
            attributions.append(_by_gradients(text, trace.tokens, measure, method, most_points, part, tell))
        tell(1.0)
    return tuple(without_rounding(attributions) if is_all else attributions)


def _by_gradients(
    text: EmbeddedText,
    tokens: Tokens,
    measure: OutcomeMeasure,
    method: AttributionMethod,
    most_points: int,
    part: tuple[int, int],
    progress: Progress,
) -> InputAttribution:
    def function(vectors: "Tensor") -> "Tensor":
        return text.outcomes(measure, vectors)

    if method == "gradient_times_input":
        values = gradients.gradient_times_input(function, text.vectors)
        return InputAttribution(method=method, tokens=tokens, values=values)
    integral = gradients.integrated_gradients(
        function, text.vectors, text.baseline, most_points=most_points, part=part, progress=progress
    )
    return _of_integral(integral, tokens, text.baseline_label)


def _of_integral(integral: PathIntegral, tokens: Tokens, baseline: str | None) -> InputAttribution:
    return InputAttribution(
        method="integrated_gradients",
        tokens=tokens,
        values=integral.values.astype(np.float32),
        baseline=baseline,
        integral=integral,
    )


def _of_sample(sample: ShapleySample, tokens: Tokens, baseline: str | None) -> InputAttribution:
    return InputAttribution(
        method="shapley",
        tokens=tokens,
        values=sample.values.astype(np.float32),
        baseline=baseline,
        sample=sample,
    )


def _of_split(model: "Model", trace: "Trace", outcome: Outcome, progress: Progress) -> InputAttribution:
    """What `decompx` gives; of a state's change it is the negative, for what a token gives to the state lowers the change."""
    found = decompx(model, trace, outcome, progress=progress)
    values = -found.values if isinstance(outcome, TokenState) else found.values
    return InputAttribution(
        method="decompx", tokens=trace.tokens, values=values, rest=0.0, passed=found.passed
    )


def _of_logit(model: "Model", trace: "Trace", outcome: TokenAnswer, progress: Progress) -> InputAttribution:
    position = outcome.place(len(trace.tokens))
    found = alti_logit(model, trace, position, outcome.token, against=outcome.against, progress=progress)
    return InputAttribution(
        method="alti_logit", tokens=trace.tokens, values=found.values, rest=found.rest, passed=found.passed
    )


def without_rounding(attributions: Sequence[InputAttribution]) -> list[InputAttribution]:
    """The attributions without gradient x input where integrated gradients show that it is only rounding."""
    largest = {attribution.method: float(np.abs(attribution.values).max()) for attribution in attributions}
    least = SMALLEST_SHARE * largest.get("integrated_gradients", 0.0)
    return [
        attribution
        for attribution in attributions
        if attribution.method != "gradient_times_input" or largest[attribution.method] >= least
    ]


def _leave_out(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    removal: TokenRemoval,
    baseline: Baseline | None,
    label: str,
    progress: Progress,
) -> InputAttribution:
    """The outcome of the text - the outcome without each token in turn; 0 for special tokens, where these are kept.

    Source: Li et al. 2016, "Understanding Neural Networks through Representation Erasure" (arXiv:1612.08220),
    equation 1, there as a share of the outcome.
    """
    n_token = len(trace.tokens)
    removed = np.concatenate([np.zeros((1, n_token), dtype=bool), np.eye(n_token, dtype=bool)])
    outcomes = outcomes_without(model, trace, outcome, removed, removal, baseline=baseline, progress=progress)
    return InputAttribution(
        method=removal,
        tokens=trace.tokens,
        values=outcomes[0] - outcomes[1:],
        baseline=label if removal == "token_replaced" else None,
    )


def _read(
    trace: "Trace", rows: Sequence[int], method: AttributionMethod, progress: Progress
) -> Float[np.ndarray, " key"]:
    """Matrices [query, key], averaged over the rows whose states the outcome reads.

    Rollout and flow are those of the last layer. Norm-based weights have a matrix for each layer, whose value vectors are
    summed over the heads before the norm (Kobayashi et al. 2020, arXiv:2004.10102); they are summed over the layers, so
    that a token gets credit for the states at its position, whatever these have read below. In an encoder-decoder model
    they are those of cross-attention.
    """
    kind = _kind(trace)
    n_layer = trace.n_layers(kind)
    if method == "flow":
        layers = [trace.layer_weights(layer, kind).mean(axis=0) for layer in range(n_layer)]
        flows = []
        for number, row in enumerate(rows):
            told = progress_within(progress, number / len(rows), 1 / len(rows))
            flows.append(attention_flow(layers, row, progress=told))
        return np.asarray(np.mean(flows, axis=0), dtype=np.float32)
    if method == "rollout":
        matrix = trace.rollout(n_layer - 1, kind)
    else:
        of_layers = []
        for layer in range(n_layer):
            of_layers.append(trace.pattern(layer, None, kind, measure="norms").weights)
            progress((layer + 1) / n_layer)
        matrix = np.sum(of_layers, axis=0)
    return _averaged(matrix, rows)


def _averaged(matrix: Float[np.ndarray, "query key"], rows: Sequence[int]) -> Float[np.ndarray, " key"]:
    return np.asarray(matrix[list(rows)].mean(axis=0), dtype=np.float32)


def _rows(trace: "Trace", outcome: AnyOutcome, measure: OutcomeMeasure) -> list[int]:
    """The tokens whose last hidden states the outcome reads: its own, those that the classifier reads, or all.

    BERT's classifier reads only the state of [CLS], GPT-2's only the last; the derivative tells which.
    """
    if isinstance(outcome, ClassAnswer):
        states = torch.tensor(trace.last_hidden_state)[None].requires_grad_()
        (gradient,) = torch.autograd.grad(measure(states).sum(), states)
        return [int(position) for position in gradient[0].abs().sum(dim=-1).nonzero()[:, 0]]
    n_token = len(trace.last_tokens)
    return [outcome.place(n_token)] if isinstance(outcome, TokenState | TokenAnswer) else list(range(n_token))


def _kind(trace: "Trace") -> Kind:
    return trace.kinds[0] if trace.target_tokens is None else "cross"


def _missing(model: "Model", trace: "Trace", outcome: AnyOutcome, method: str) -> str | None:
    """Why a method does not apply; None where it does."""
    if method not in METHODS:
        return "attnviz has no such method"
    if isinstance(outcome, str):
        outcome = outcome_from(outcome)
    if method == "gradient_times_input" and isinstance(outcome, TokenState):
        return "the change of a token's state is smallest in the unchanged run, where its gradient is 0"
    if method in _OF_GRADIENTS and isinstance(outcome, TokenAnswer) and outcome.by == "rank":
        return "a rank changes in steps, and has no gradient"
    if method in ("rollout", "flow", *_OF_PARTS) and trace.target_tokens is not None:
        return "it follows one text through all layers, and an encoder-decoder model reads two"
    longest = FLOW_TOKENS if isinstance(outcome, TokenState | TokenAnswer) else FLOW_TOKENS // 2
    if method == "flow" and len(trace.tokens) > longest:
        return f"it is computed for at most {longest} tokens, and the text has {len(trace.tokens)}"
    if method == "norms" and "norms" not in trace.measures(_kind(trace)):
        return f"attnviz does not know W_O of {trace.provenance.model}"
    return _cannot_be_taken_apart(model, trace, outcome, method) if method in _OF_PARTS else None


def _cannot_be_taken_apart(model: "Model", trace: "Trace", outcome: AnyOutcome, method: str) -> str | None:
    if model.network.dtype != torch.float32:
        return f"{model.name} computes in {model.provenance.dtype}, which rounds too much for it"
    if method == "value_zeroing":
        return None
    if not model.structure.mlps or trace.kinds[0] not in model.output_maps:
        return f"attnviz does not know how the layers of {model.name} add to the residual stream"
    if method == "decompx":
        return missing(model, trace, outcome)
    if method != "alti_logit":
        return None
    if not isinstance(outcome, TokenAnswer) or outcome.by == "rank":
        return "it attributes a logit, or a difference of two"
    if model.language_head is None:
        return f"{model.name} has no language head"
    if not has_linear_head(model, trace, outcome.place(len(trace.tokens)), outcome.token):
        return f"the language head of {model.name} is not linear"
    return None
