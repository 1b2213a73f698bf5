"""What each token of the text adds to a logit through attention: ALTI-Logit, direct logit attribution traced to the text by ALTI.

Each layer's attention adds to the logit a part for each token that it reads (`attnviz.effects.logit_attribution`). What it reads there
is no longer that token alone, but what the layers below have mixed in: the part is divided among the tokens of the text as ALTI's
rollout of those layers says (`attnviz.effects.context_mixing`), whose rows sum to 1, so that nothing is lost.

    logit = x_0 · u_0 + sum over tokens k of (sum over layers l of D_l C_(l-1) ... C_1)_k + MLPs + biases

Source: Ferrando et al. 2023, "Explaining How Transformers Use Context to Build Predictions" (arXiv:2305.12535), section 3.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.effects.context_mixing import alti_of
from attnviz.effects.logit_attribution import TOLERANCE, DirectEffects, attribute_token
from attnviz.model.model import Model
from attnviz.model.stream import record_whole_stream
from attnviz.model.trace import Trace
from attnviz.records import Axis, Progress, Result, Tokens
from attnviz.records.table import Table, entry_names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AltiLogit(Result):
    """A logit, or a difference of two, as a sum with a part for each token of the text."""

    tokens: Tokens
    of_attention: Float[np.ndarray, " token"]
    """What all heads of all layers add, traced to the tokens of the text."""
    direct: DirectEffects
    """The direct effects that are traced: also what the start, the MLPs and the biases add."""

    @property
    def values(self) -> Float[np.ndarray, " token"]:
        """What each token adds: through attention, and the token at which the logit is predicted by what enters the first layer too."""
        values = self.of_attention.copy()
        values[self.direct.position] += self.direct.embedding
        return values

    @property
    def rest(self) -> float:
        """What belongs to no token: MLPs and biases."""
        return (
            float(sum(part.sum(dtype=np.float64) for part in (self.direct.mlps, self.direct.biases)))
            + self.direct.bias
        )

    @property
    def summed(self) -> float:
        """The sum of all parts."""
        return float(self.values.sum(dtype=np.float64)) + self.rest

    @property
    def gap(self) -> float:
        """The model's own number minus the sum of the parts: rounding alone."""
        return self.direct.total - self.summed

    @property
    def passed(self) -> bool:
        """Whether the parts sum to the model's own number, as `DirectEffects.passed`; False for NaN."""
        return abs(self.gap) <= TOLERANCE * self.direct.size

    def _table(self) -> Table:
        """A row for each part."""
        names = entry_names(Axis.of(self.tokens))
        rows: list[list[object]] = [list(row) for row in zip(names, self.of_attention, strict=True)]
        rows += [
            ["start", self.direct.embedding],
            ["MLPs", float(self.direct.mlps.sum(dtype=np.float64))],
            ["biases of the layers", float(self.direct.biases.sum(dtype=np.float64))],
            ["final biases", self.direct.bias],
            ["sum", self.summed],
            ["model", self.direct.total],
        ]
        return ["part", self.direct.unit], rows


@typed
def alti_logit(
    model: Model,
    trace: Trace,
    position: int,
    token: str,
    *,
    against: str | None = None,
    progress: Progress | None = None,
) -> AltiLogit:
    """What each token of the text adds to the logit of a token, predicted at a position of a trace.

    Args:
        trace: of the text without interventions.
        token: as `attnviz.model.answers.token_id`.
        against: another token, whose logit is subtracted.
        progress: called with the share that is done, 0 to 1.

    Raises:
        As `attnviz.effects.logit_attribution.attribute_token`.
    """
    direct = attribute_token(model, trace, position, token, against=against)
    mixing = alti_of(model, trace, record_whole_stream(model, trace), progress=progress)
    of_text = np.zeros(len(trace.tokens))
    for layer in reversed(
        range(len(mixing.matrices))
    ):  # from the last: what it reads is what the layer below leaves
        of_text += direct.sources[layer].sum(axis=0, dtype=np.float64)
        if layer:
            of_text = of_text @ mixing.matrices[layer - 1].astype(np.float64)
    return AltiLogit(tokens=trace.tokens, of_attention=of_text.astype(np.float32), direct=direct)
