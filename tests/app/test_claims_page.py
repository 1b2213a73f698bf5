"""What is often said: the verdicts follow from the numbers, and the numbers are the model's."""

import re

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import spearmanr

from tests.app.screen import DOOR, assert_no_exception, facts, figure, numbers, open_page, unescaped

PAGE = "pages/claims.py"
SENTENCES = (DOOR, " ".join(["one"] * 8))
DIAGONAL = "arXiv:1906.04341"
"""The paper that the share of queries which attend most to themselves is compared with."""


def lines(at) -> list[str]:
    """Words of the page, without Markdown's escapes."""
    return [unescaped(element.value) for element in at.markdown if not element.value.startswith("<style")]


@pytest.mark.parametrize("text", SENTENCES)
def test_the_numbers_are_the_models(text, embedded):
    at = open_page(PAGE, text=text)
    assert_no_exception(at)
    trace = embedded.trace(text)
    places = [(layer, head) for layer in range(6) for head in range(12)]
    weights = [trace.weights(*place) for place in places]
    itself = np.array([np.mean(weight.argmax(axis=1) == np.arange(len(weight))) for weight in weights])
    shown = numbers(figure(at, "claim_diagonal")["data"][0]["x"])
    np.testing.assert_allclose(shown, itself, atol=1e-6)
    words = paragraph(at, DIAGONAL)
    assert share_after(r"own token", words) == f"{100 * itself.mean():.1f}%"
    special = trace.tokens.is_special
    is_special = [special[w.argmax(axis=1)] & (w.argmax(axis=1) != np.arange(len(w))) for w in weights]
    assert share_after(r"special token\]\([^)]*\)", words) == f"{100 * np.mean(is_special):.1f}%"
    assert sum(shares(words)) == pytest.approx(100, abs=0.2)  # each rounded to 0.1
    if text == DOOR:
        assert [line for line in lines(at) if line.startswith("**Literally true**")]
    norms = [trace.pattern(*place, measure="norms").weights for place in places]
    pairs = list(zip(weights, norms, strict=True))
    differing = np.array([np.mean(w.argmax(axis=1) != n.argmax(axis=1)) for w, n in pairs])
    order = [
        np.mean(
            [spearmanr(*rows).statistic for rows in zip(w, n, strict=True) if len(set(rows[0].tolist())) > 1]
        )
        for w, n in pairs
    ]
    agree = int(((differing < 0.1) & (np.array(order) > 0.9)).sum())
    on_norms = facts(paragraph(at, "arXiv:2004.10102")).numbers
    assert on_norms[:4] == (str(agree), "72", "90%", "0.9")
    assert on_norms[4:6] == (f"{100 * differing.mean():.1f}%", f"{np.mean(order):+.2f}".replace("-", "−"))
    most = numbers(figure(at, "claim_full")["data"][0]["x"])
    concentrated = [f"{100 * share:.1f}%" for share in (np.median(most), most.min())]
    [on_cells] = [
        facts(line).numbers for line in lines(at) if facts(line).has("90%") and "concentrated" in line
    ]
    assert [on_cell for on_cell in on_cells if on_cell in concentrated] == concentrated
    asymmetry = np.array([np.abs(weight - weight.T).sum() / (2 * weight.sum()) for weight in weights])
    counted = str(int((asymmetry <= 0.05).sum())), "72", "0.05"  # heads, of how many, that are so symmetric
    [of_asymmetry] = [facts(line).numbers for line in lines(at) if facts(line).has(*counted)]
    assert f"{np.median(asymmetry):.2f}" in of_asymmetry
    scores = [trace.scores(*head).astype(np.float64) for head in trace.heads()]
    of_scores = np.median([np.abs(score - score.T).sum() / (2 * np.abs(score).sum()) for score in scores])
    keys = [trace.head(*head).key.astype(np.float64) for head in trace.heads()]
    tied = [softmax(key @ key.T / np.sqrt(key.shape[1]), axis=1) for key in keys]
    of_tied = np.median([np.abs(cells - cells.T).sum() / (2 * cells.sum()) for cells in tied])
    [why] = [facts(line).numbers for line in lines(at) if "different matrices" in line]
    assert why == (f"{of_scores:.2f}", f"{of_tied:.2f}") and of_scores != of_tied


def paragraph(at, paper: str) -> str:
    """What the page says where it compares with this paper."""
    [words] = [line for line in lines(at) if paper in line]
    return words


def share_after(name: str, words: str) -> str:
    """The first percentage after a name."""
    match = re.search(rf"{name}[^\d,]*(\d+\.\d%)", words)
    return match[1] if match else ""


def shares(words: str) -> list[float]:
    """The percentages of a sentence."""
    return [float(match) for match in re.findall(r"(\d+\.\d)%", words)]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_causal_mask_is_not_taken_for_what_heads_do(name, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(name)))
    text = "the cat sat"  # 11 bytes: 55 of 121 cells lie above the diagonal
    at = open_page(PAGE, model=name, text=text)
    assert_no_exception(at)
    words = " ".join(lines(at))
    assert "#causal-mask " in words
    assert "#softmax " not in words and "nan" not in words
    assert "without a mask" not in words
    hidden = f"{100 * 55 / 121:.1f}%"
    assert [line for line in lines(at) if line.startswith("**Not") and facts(line).numbers[0] == hidden]
    counted = paragraph(at, DIAGONAL)
    assert "special token" not in counted  # these tokenizers add none
    assert sum(shares(counted)) == pytest.approx(100, abs=0.2)


def test_a_bias_is_not_symmetric_either(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("t5")))
    at = open_page(PAGE, model="t5", text="the cat sat", second="a door", kind="encoder")
    assert_no_exception(at)
    assert "no bias" in " ".join(lines(at))
    assert "no bias" not in " ".join(lines(open_page(PAGE)))


def test_a_verdict_follows_from_its_numbers():
    at = open_page(PAGE)
    for words in lines(at):
        for verdict, n, of in re.findall(
            r"\*\*(Holds|Does not hold|Half true)\*\* here: (\d+) of (\d+) heads", words
        ):
            share = int(n) / int(of)
            assert verdict == (
                "Holds" if share >= 2 / 3 else "Does not hold" if share <= 1 / 3 else "Half true"
            )


def test_cross_attention_is_explained(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bart")))
    from attnviz.model.catalogue import offers

    own = [offer.name for offer in offers() if "bart" in offer.name][-1]
    at = open_page(PAGE, model=own, text="the cat sat", second="a door", kind="cross")
    assert_no_exception(at)
    assert "Select self-attention" in unescaped(at.error[0].value)
