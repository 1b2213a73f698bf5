"""What the glossary says of terms that are often misunderstood, by numbers and by the papers."""

from pathlib import Path

import numpy as np
import torch

from attnviz.maths.attention import softmax
from ui.words.glossary import GROUPS, linked

TERMS = {term.name: term for terms in GROUPS.values() for term in terms}
MATHS = (Path(__file__).parents[2] / "docs" / "maths.md").read_text(encoding="utf-8")


def shares(logits: list[float], temperature: float) -> np.ndarray:
    raised = np.exp(np.array(logits) / temperature)
    return raised / raised.sum()


def test_a_low_temperature_does_not_make_every_likely_token_likelier():
    logits = [2.0, 1.8, 0.0]
    usual, cold = shares(logits, 1.0), shares(logits, 0.2)
    assert usual[1] > 0.4 > cold[1]  # the second of three is likely, and becomes less so
    assert cold[0] > usual[0] and cold[0] / cold[1] > usual[0] / usual[1]
    for text in (TERMS["Sampling temperature"].means, MATHS):
        words = " ".join(text.split())
        assert "below 1 likely tokens" not in words.lower().replace(",", "")
        assert "the larger of any two probabilities grows relative to the smaller" in words
        assert "the most likely token becomes likelier" in words


def test_a_key_that_is_seen_can_have_a_weight_of_0():
    assert softmax(torch.tensor([[0.0, -104.5]])).tolist() == [[1.0, 0.0]]
    assert softmax(torch.tensor([[0.0, -103.0]]))[0, 1] > 0
    assert "float32 rounds it to 0" in TERMS["Softmax"].means
    assert "float32 rounds it to 0" in MATHS


def test_terms_are_cited_where_their_papers_say_it():
    assert "Wattenberg et al. 2016, doi:10.23915/distill.00002" in TERMS["t-SNE"].source
    assert TERMS["Integrated gradients"].source.endswith("1703.01365, equation 1")
    assert "Xiong et al. 2020, arXiv:2002.04745" in TERMS["Residual stream"].source
    assert "post-norm models normalise every sum" in TERMS["Residual stream"].means
    assert TERMS["Logit lens"].source.endswith("the similarity: defined here")
    assert "keys of a row read some at a time, each once" in TERMS["Streaming softmax"].means


def test_a_term_is_linked_as_it_is_written_within_a_sentence():
    """An abbreviation keeps its capitals; what stands on the card is the term as the glossary has it."""
    for name, written, anchor in (
        ("Causal mask", "causal mask", "causal-mask"),
        ("W_O", "W_O", "w-o"),
        ("KL divergence", "KL divergence", "kl-divergence"),
        ("UMAP", "UMAP", "umap"),
    ):
        card = f'(glossary#{anchor} "{name}: {TERMS[name].means}")'
        assert linked(name) == f"[{written}]{card}"
        assert linked(name, "Elsewhere") == f"[Elsewhere]{card}"
