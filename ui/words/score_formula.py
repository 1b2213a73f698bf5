"""How a model's scores differ from scaled dot products alone, as formulas and in words.

Source: Vaswani et al. 2017, arXiv:1706.03762, equation 1; the softcap: Gemma Team 2024, arXiv:2408.00118, section 2.
"""

import numpy as np

from attnviz.records import LayerAttention


def capped_latex(product: str, softcap: float | None) -> str:
    """A scaled product in LaTeX, within the model's softcap, if any."""
    if softcap is None:
        return product
    return rf"{softcap:g} \tanh\!\left(\frac{{{product}}}{{{softcap:g}}}\right)"


def departures(call: LayerAttention) -> str:
    """What a layer does that the formula of 2017 does not, such as "multiplies by 1 and adds a bias"; empty for nothing."""
    said = []
    if not np.isclose(call.scale, call.query.shape[2] ** -0.5):
        said.append(f"multiplies by {call.scale:.3g}")
    if call.softcap is not None:
        said.append(f"softcaps each score to {call.softcap:g} at most")
    if call.bias is not None:
        said.append("adds a bias to each score")
    return " and ".join(filter(None, [", ".join(said[:-1]), *said[-1:]]))
