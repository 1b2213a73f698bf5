"""The example of each showcase: its numbers are the formulas' on the model's own vectors, and the largest of all."""

from collections import Counter

import numpy as np
import pytest
import torch

from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from benchmarks import showcases as measured
from tests import numpy_attention
from ui.choice.presets import PRESETS, offered_presets
from ui.choice.selection import Selection
from ui.choice.showcases import FILE, SHOWCASES, read_showcases, showcase_for
from ui.rooms import PAGES

BY_PAGE = {showcase.page: showcase for showcase in SHOWCASES if showcase.model == EMBEDDED}
D_HEAD = {EMBEDDED: 32, SMOLLM2: 64}


@pytest.fixture(params=SHOWCASES, ids=lambda case: f"{case.page}, {case.model}")
def showcase(request):
    return request.param


def rows(trace, showcase, scale):
    n = len(trace.tokens)
    return numpy_attention.weights(
        trace.query(showcase.layer, showcase.head),
        trace.key(showcase.layer, showcase.head),
        scale,
        allowed=np.tril(np.ones((n, n), dtype=bool)) if showcase.model == SMOLLM2 else None,
    )


def entropy(showcase, row):
    """As a share of ln n, where n is the number of keys that the query may see."""
    n_seen = showcase.query + 1 if showcase.model == SMOLLM2 else len(row)
    return -(row[row > 0] * np.log(row[row > 0])).sum() / np.log(n_seen)


def shuffled(model, trace, query):
    """1 - cosine of a token's last hidden state when the words are in another order, by transformers alone."""
    order = np.arange(len(trace.tokens))
    order[1:-1] = np.random.default_rng(0).permutation(np.arange(1, len(order) - 1))
    ids = torch.tensor(trace.tokens.ids)[None]
    with torch.inference_mode():
        before, after = (
            model.reference(input_ids=token_ids).last_hidden_state[0]
            for token_ids in (ids, ids[:, order.tolist()])
        )
    return 1 - float(torch.cosine_similarity(before[query], after[np.argsort(order)[query]], dim=0))


def recomputed(model, trace, showcase):
    """The numbers of a showcase, without attnviz's own formulas."""
    own_scale = D_HEAD[showcase.model] ** -0.5
    match showcase.page:
        case "Step by step":
            return [rows(trace, showcase, own_scale)[showcase.query, showcase.key]]
        case "Scaling":
            return [
                entropy(showcase, rows(trace, showcase, scale)[showcase.query]) for scale in (own_scale, 1)
            ]
        case "Positions":
            return [shuffled(model, trace, showcase.query), 0]
        case "Kinds of attention":
            return [np.triu(rows(trace, showcase, own_scale), 1).sum() / len(trace.tokens)]
        case "Myths":
            weights = rows(trace, showcase, own_scale)
            return [np.abs(weights - weights.T).sum() / (weights + weights.T).sum()]
        case "History":
            return [rows(trace, showcase, scale)[showcase.query].max() for scale in (own_scale, 1)]


def test_numbers_are_the_formulas(showcase, request):
    model = request.getfixturevalue({EMBEDDED: "embedded", SMOLLM2: "smollm2"}[showcase.model])
    trace = model.trace(showcase.text)
    # Rounding of float32 in the vectors; unscaled scores are 5.7 or 8 times as large.
    np.testing.assert_allclose(recomputed(model, trace, showcase), showcase.numbers, atol=1e-3)
    assert trace.tokens.labels[showcase.query] == showcase.query_label
    if showcase.key is not None:
        assert trace.tokens.labels[showcase.key] == showcase.key_label


@pytest.mark.parametrize("page", ["History", "Kinds of attention"])
def test_it_is_the_largest_of_all_examples_heads_and_queries(page, embedded):
    showcase, largest = BY_PAGE[page], 0.0
    for preset in PRESETS:
        trace = embedded.trace(preset.text)
        if "[MASK]" in preset.text or len(trace.tokens) > 24:
            continue
        labels = trace.tokens.labels
        is_word = np.array([label.isalpha() and label[0] != "[" for label in labels])
        for layer in range(6):
            for head in range(12):
                scaled, unscaled = (
                    numpy_attention.weights(trace.query(layer, head), trace.key(layer, head), scale)
                    for scale in (32**-0.5, 1)
                )
                if page == "Kinds of attention":
                    largest = max(largest, float(np.triu(scaled, 1).sum() / len(labels)))
                    continue
                same = (key := unscaled.argmax(axis=1)) == scaled.argmax(axis=1)
                fits = same & is_word & is_word[key] & (key != np.arange(len(labels)))
                grown = np.where(fits, unscaled.max(axis=1) - scaled.max(axis=1), 0)
                largest = max(largest, float(grown.max()))
    effect = (
        showcase.numbers[0] if page == "Kinds of attention" else showcase.numbers[1] - showcase.numbers[0]
    )
    assert effect == pytest.approx(largest, abs=1e-3)


def test_the_file_is_what_the_command_writes(embedded):
    """For one showcase, to save time; where it fails: `make showcases`."""
    results = [measured.largest("Myths", embedded, *candidate) for candidate in measured.candidates(embedded)]
    best = max(results, key=lambda result: result[0])[1]
    [written] = read_showcases(measured._toml(best))
    assert written == BY_PAGE["Myths"]


def test_each_showcase_has_a_page_and_an_example_that_is_offered(showcase):
    assert showcase.page in {page.name for page in PAGES}
    assert showcase.text in {
        offered_preset.text for offered_preset in offered_presets(showcase.model, fills_blanks=False)
    }
    assert "{" not in showcase.words and showcase.query_label not in ("[CLS]", "[SEP]")


def test_every_page_has_one_at_most():
    assert max(Counter((showcase.page, showcase.model) for showcase in SHOWCASES).values()) == 1
    assert read_showcases(FILE.read_text(encoding="utf-8")) == SHOWCASES
    assert Counter(showcase.model for showcase in SHOWCASES) == {
        name: len(pages) for name, pages in measured.PAGES.items()
    }


def test_it_is_offered_until_it_is_shown(showcase):
    here = Selection(model=showcase.model, text="Something else.", layer=3, head=1)
    assert showcase_for(showcase.page, here) == showcase
    there = here.but(**showcase.changes)
    assert showcase_for(showcase.page, there) is None
    assert showcase_for(showcase.page, there.but(query=1)) == showcase
    assert showcase_for(showcase.page, there.but(text="Something else.")) == showcase
    assert showcase_for(showcase.page, there.but(model="bert-base-uncased")) == BY_PAGE[showcase.page]
    assert there.but(model="bert-base-uncased").but(**showcase.changes).model == showcase.model
    assert showcase_for(showcase.page, here.but(bundle="abc")) is None
    assert showcase_for("Together", here) is None


def test_words_have_the_forms_of_numbers():
    assert BY_PAGE["History"].words == "“her” gives “river” 19.7% of its attention scaled, 97.1% unscaled"
    assert "turns by 0.44 with positions, by 0.00 without" in BY_PAGE["Positions"].words
