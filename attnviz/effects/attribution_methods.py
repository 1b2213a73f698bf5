"""The methods that attribute an outcome to the tokens of a text: each one's name, what it says, and its source.

Without torch, so that figures and pages can read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

AttributionMethod = Literal[
    "gradient_times_input",
    "integrated_gradients",
    "shapley",
    "token_replaced",
    "keys_masked",
    "decompx",
    "alti_logit",
    "norms",
    "rollout",
    "flow",
    "alti",
    "value_zeroing",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What is said of a method, wherever it stands."""

    title: str
    """Its name on screen and in figures."""
    what: str
    """What its numbers are, in a sentence."""
    source: str
    has_sign: bool = True
    """Whether a token may lower the outcome; weights say only how much is read."""
    is_quick: bool = True
    """Whether it is computed where no method is named."""


METHODS: Mapping[AttributionMethod, Method] = MappingProxyType(
    {
        "gradient_times_input": Method(
            title="Gradient × input",
            what="The outcome's slope at the text, times each token's vector: the change to first order.",
            source="Shrikumar et al. 2016, arXiv:1605.01713",
        ),
        "integrated_gradients": Method(
            title="Integrated gradients",
            what="Slopes averaged on the way from the baseline to the text; if they converge, they sum to the change of the outcome.",
            source="Sundararajan et al. 2017, arXiv:1703.01365",
        ),
        "shapley": Method(
            title="Shapley values",
            what="What each token changes when it joins the others, averaged over random orders; they sum to the change of the outcome.",
            source="Shapley 1953; Castro et al. 2009, doi:10.1016/j.cor.2008.04.004",
            is_quick=False,
        ),
        "token_replaced": Method(
            title="Token replaced",
            what="The outcome of the text minus the outcome with the token replaced by the baseline.",
            source="Li et al. 2016, arXiv:1612.08220",
        ),
        "keys_masked": Method(
            title="Keys masked",
            what="The outcome of the text minus the outcome while no query sees the token.",
            source="Li et al. 2016, arXiv:1612.08220",
        ),
        "decompx": Method(
            title="DecompX",
            what="The outcome as a sum of the tokens' parts, through all layers at the weights, scales and slopes that they had.",
            source="Modarressi et al. 2023, arXiv:2306.02873",
        ),
        "alti_logit": Method(
            title="ALTI-Logit",
            what="What attention adds to the logit, traced to the tokens of the text by ALTI; with MLPs and biases it sums to the logit.",
            source="Ferrando et al. 2023, arXiv:2305.12535",
        ),
        "norms": Method(
            title="Norm-based weights",
            what="Lengths of what the heads read from the token, summed over the layers.",
            source="Kobayashi et al. 2020, arXiv:2004.10102",
            has_sign=False,
        ),
        "rollout": Method(
            title="Rollout",
            what="Attention weights multiplied through all layers.",
            source="Abnar and Zuidema 2020, arXiv:2005.00928",
            has_sign=False,
        ),
        "flow": Method(
            title="Attention flow",
            what="The largest flow from the token through attention weights as capacities.",
            source="Abnar and Zuidema 2020, arXiv:2005.00928",
            has_sign=False,
        ),
        "alti": Method(
            title="ALTI",
            what="How close each token's part of the vectors after attention is to the whole, multiplied through all layers.",
            source="Ferrando et al. 2022, arXiv:2203.04212",
            has_sign=False,
        ),
        "value_zeroing": Method(
            title="Value zeroing",
            what="How much vectors turn when the token's values are 0 in a layer, multiplied through all layers.",
            source="Mohebbi et al. 2023, arXiv:2301.12971",
            has_sign=False,
        ),
    }
)
"""By name, in the order in which they are shown."""


def titled(name: str, converged: bool) -> str:
    """The name of a method where its numbers or their order stand: integrated gradients that did not converge say so."""
    return name if converged else f"{name} (not converged)"
