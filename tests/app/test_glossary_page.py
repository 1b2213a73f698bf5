"""The glossary: its numbers are the reader's, and every term is linked from a page."""

import re

import numpy as np
import pytest
from scipy.stats import entropy

from attnviz.figures.numbers import number_text
from tests import tiny
from tests.app.screen import DOOR, Facts, assert_no_exception, facts, open_page
from ui.rooms import PAGES
from ui.words.glossary import GROUPS, PAGE

TERMS = {term.anchor: term for terms in GROUPS.values() for term in terms}
LINK = re.compile(r"\]\(glossary#([^ )]+)")


def here(at) -> list[Facts]:
    """What the sentences with the reader's numbers name."""
    return [facts(line.value) for line in at.markdown if line.value.startswith(":material/data_object:")]


@pytest.mark.parametrize(
    ("text", "layer", "head", "query", "key"), [(DOOR, 3, 1, 7, 5), ("Paris has 17 old bridges", 5, 11, 2, 4)]
)
def test_the_numbers_are_the_models(text, layer, head, query, key, embedded):
    at = open_page(PAGE, text=text, layer=layer, head=head, query=query, key=key)
    assert_no_exception(at)
    trace = embedded.trace(text)
    q, k = (vectors(layer, head).astype(np.float64) for vectors in (trace.query, trace.key))
    scores = q @ k.T / np.sqrt(32)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    query_label, key_label = trace.tokens.labels[query], trace.tokens.labels[key]
    cosine = q[query] @ k[key] / np.linalg.norm(q[query]) / np.linalg.norm(k[key])
    n_token = str(len(trace.tokens))
    facts_here = here(at)
    for named in (
        Facts(numbers=(n_token,)),
        Facts((query_label, key_label), numbers=(number_text(float(scores[query, key])),)),
        Facts((query_label, key_label), numbers=(f"{100 * weights[query, key]:.1f}%",)),
        Facts((query_label, key_label), numbers=(number_text(float(cosine)),)),
        Facts(
            (query_label,), numbers=(n_token, f"{100 * entropy(weights[query], base=len(trace.tokens)):.1f}%")
        ),
        Facts((query_label,), numbers=(n_token, "32")),
        Facts((key_label,), numbers=(n_token, "32")),
        Facts(numbers=("384",)),
    ):
        assert named in facts_here


def links_of(page: str, **params: object) -> set[str]:
    """Anchors of the terms that a page links to, each linked once."""
    at = open_page(page, **params)
    links = [link for element in [*at.markdown, *at.caption] for link in LINK.findall(element.value)]
    assert len(links) == len(set(links)), f"{page} links a term twice"
    return set(links)


@pytest.mark.nightly
def test_every_term_is_linked_from_a_page_and_every_link_has_a_term(tmp_path, offer_to_workers):
    linked = set()
    for page in [
        page.file for page in PAGES if page.file not in (PAGE, "pages/many_sentences.py", "pages/all_maps.py")
    ]:
        for step in range(8 if page == "pages/step_by_step.py" else 1):
            linked |= links_of(page, text="The door opened.", second="Who opened it?", step=step)
    offer_to_workers(tiny.save_with_head("bert", tmp_path / "bert"))  # without a head no lens shows answers
    linked |= links_of("pages/lens.py", model="bert", text="the cat sat")
    assert linked == set(TERMS)


def test_a_link_is_the_same_whatever_is_picked():
    """So that it is sent once; `ui.components.page` adds what is picked when it is used, see tests/browser/test_rooms.py."""
    first, second = (
        open_page("pages/claims.py", text="Old [doors](x) creak", layer=2, head=head, query=head)
        for head in (1, 2)
    )
    links = [
        [element.value for element in at.markdown if "#softmax" in element.value] for at in (first, second)
    ]
    assert links[0] == links[1] and len(links[0]) == 1 and "(glossary#softmax " in links[0][0]
