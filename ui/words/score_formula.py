"""How a model's scores differ from plain scaled dot products, as formulas and in words.

Source: Vaswani et al. 2017, arXiv:1706.03762, equation 1; the softcap: Gemma Team 2024, arXiv:2408.00118, section 2.
"""

import numpy as np

from attnviz.records import LayerAttention


def capped_latex(product: str, softcap: float | None) -> str:
    """A scaled product in LaTeX, inside the model's softcap if it has one."""
    if softcap is None:
        return product
    return rf"{softcap:g} \tanh\!\left(\frac{{{product}}}{{{softcap:g}}}\right)"


def layer_departures(call: LayerAttention) -> str:
    """As `departures`, for a layer."""
    is_usual = bool(np.isclose(call.scale, call.query.shape[2] ** -0.5))
    return departures(None if is_usual else call.scale, call.softcap, has_bias=call.bias is not None)


def departures(scale: float | None, softcap: float | None, *, has_bias: bool) -> str:
    """Departures from the 2017 formula, such as "multiplies by 1 and adds a bias to each score"; empty for none.

    Args:
        scale: None for 1 / sqrt(d_head).
    """
    sentences = []
    if scale is not None:
        sentences.append(f"multiplies by {scale:.3g}")
    if softcap is not None:
        sentences.append(f"softcaps each score to {softcap:g} at most")
    if has_bias:
        sentences.append("adds a bias to each score")
    return " and ".join(filter(None, [", ".join(sentences[:-1]), *sentences[-1:]]))
