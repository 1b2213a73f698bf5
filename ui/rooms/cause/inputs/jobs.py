"""Attributes the outcome to tokens, in worker processes."""

from collections.abc import Sequence

from attnviz.effects.deletion import Deletion, RandomOrders, deletion_curves, random_orders
from attnviz.effects.input_attribution import AttributionMethod, InputAttribution, attribute_inputs
from attnviz.effects.outcome import outcome_from
from attnviz.model.trace import Trace
from attnviz.records import Progress
from ui.runtime import with_model


def attribute(
    name: str,
    trace: Trace,
    outcome: str,
    method: AttributionMethod,
    *,
    part: tuple[int, int] = (0, 1),
    progress: Progress,
) -> InputAttribution:
    """Each token's attribution by one method, as `attnviz.effects.input_attribution.attribute_inputs`."""
    model = with_model.own(name)
    (attribution,) = attribute_inputs(
        model, trace, outcome_from(outcome), methods=[method], part=part, progress=progress
    )
    return attribution


def delete_at_random(
    name: str, trace: Trace, outcome: str, *, seed: int, part: tuple[int, int], progress: Progress
) -> RandomOrders:
    """The outcome while tokens are deleted in part of the random orders, as `attnviz.effects.deletion.random_orders`."""
    return random_orders(
        with_model.own(name), trace, outcome_from(outcome), seed=seed, part=part, progress=progress
    )


def delete(
    name: str,
    trace: Trace,
    outcome: str,
    attributions: Sequence[InputAttribution],
    chance: RandomOrders,
    *,
    progress: Progress,
) -> Deletion:
    """The outcome while tokens are deleted in each method's order, as `attnviz.effects.deletion.deletion_curves`."""
    return deletion_curves(
        with_model.own(name), trace, outcome_from(outcome), attributions, chance, progress=progress
    )
