"""What is often said: the verdicts follow from the numbers, and the numbers are the model's."""

import re

import numpy as np
import pytest

from tests.app.screen import DOOR, assert_no_exception, figure, numbers, open_page, unescaped

PAGE = "pages/claims.py"
SENTENCES = (DOOR, "one one one one one one one one")


def said(at) -> list[str]:
    """Words of the page, without Markdown's escapes."""
    return [unescaped(one.value) for one in at.markdown if not one.value.startswith("<style")]


@pytest.mark.parametrize("text", SENTENCES)
def test_the_numbers_are_the_models(text, embedded):
    at = open_page(PAGE, text=text)
    assert_no_exception(at)
    trace = embedded.trace(text)
    places = [(layer, head) for layer in range(6) for head in range(12)]
    weights = [trace.weights(*place) for place in places]
    itself = np.array([np.mean(one.argmax(axis=1) == np.arange(len(one))) for one in weights])
    shown = numbers(figure(at, "claim_diagonal")["data"][0]["x"])
    np.testing.assert_allclose(shown, itself, atol=1e-6)
    [words] = [one for one in said(at) if "look at themselves most" in one]
    assert f"{100 * itself.mean():.1f}\u00a0% of the queries look at themselves most" in words
    asymmetry = np.array([np.abs(one - one.T).sum() / (2 * one.sum()) for one in weights])
    [words] = [one for one in said(at) if "are symmetric to within" in one]
    assert f"{int((asymmetry <= 0.05).sum())} of 72 heads are symmetric" in words
    assert f"The median is {np.median(asymmetry):.2f}" in words


def test_a_verdict_follows_from_its_numbers():
    at = open_page(PAGE)
    for words in said(at):
        for verdict, n, of in re.findall(
            r"\*\*(Holds|Does not hold|Half true)\*\* here: (\d+) of (\d+) heads", words
        ):
            share = int(n) / int(of)
            assert verdict == (
                "Holds" if share >= 2 / 3 else "Does not hold" if share <= 1 / 3 else "Half true"
            )


def test_cross_attention_is_explained(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bart")))
    from attnviz.catalogue import offers

    own = [one.name for one in offers() if "bart" in one.name][-1]
    at = open_page(PAGE, model=own, text="the cat sat", second="a door", kind="cross")
    assert_no_exception(at)
    assert "Pick self-attention" in unescaped(at.error[0].value)
