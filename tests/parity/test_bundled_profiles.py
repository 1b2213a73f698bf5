"""The profiles of the bundled sentences: recomputed in plain loops, and what its induction heads do is lost without them."""

import math
import string

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import transformers as tf

from attnviz.corpus.labels import read_conllu
from attnviz.corpus.naming import NAMES, linked_words, names_of
from attnviz.corpus.pipeline import profile_texts
from attnviz.corpus.profile import probes_of, read_profile
from attnviz.corpus.texts import Entry
from attnviz.heads.probes import PROBES, probe_heads
from attnviz.maps.collection import bundled, sentences
from attnviz.model.answers import token_logits
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from attnviz.model.interventions import ScaledOutput
from attnviz.model.repeated_tokens import trace_repeated
from attnviz.records import Head
from ui.runtime.profiles import BUNDLED

N_TEXT = 40
TEXTS = [text for _, text in sentences(bundled())][:N_TEXT]
PUNCTUATION = set(string.punctuation)


def by_hand(ids, special, labels, weights):
    """Each statistic of one head on one text, cell by cell from its weights."""
    n = len(ids)
    numbers = {}
    numbers["self"] = np.mean([weights[i][i] for i in range(n)])
    numbers["previous"] = np.mean([weights[i][i - 1] for i in range(1, n)])
    numbers["next"] = np.mean([weights[i][i + 1] for i in range(n - 1)])
    numbers["first"] = np.mean([weights[i][0] for i in range(n)])
    numbers["cls"] = numbers["first"]
    numbers["sep"] = np.mean([weights[i][n - 1] for i in range(n)])
    marks = [j for j in range(n) if all(label in PUNCTUATION for label in labels[j])]
    if marks:
        numbers["punctuation"] = np.mean([sum(weights[i][j] for j in marks) for i in range(n)])
    numbers["distance"] = sum(weights[i][j] * abs(i - j) for i in range(n) for j in range(n)) / n
    numbers["entropy"] = np.mean(
        [-sum(value * math.log(value) for value in row if value > 0) / math.log(n) for row in weights]
    )
    twins = {i: [j for j in range(n) if j != i and ids[j] == ids[i] and not special[i]] for i in range(n)}
    if any(twins.values()):
        numbers["same_token"] = np.mean([sum(weights[i][j] for j in twins[i]) for i in range(n) if twins[i]])
        earlier = {i: [j + 1 for j in twins[i] if j < i] for i in range(n)}
        if any(earlier.values()):
            numbers["induction"] = np.mean(
                [sum(weights[i][j] for j in set(earlier[i])) for i in range(n) if earlier[i]]
            )
    return numbers


@pytest.mark.nightly
def test_every_number_of_40_texts_by_hand(embedded):
    """The weights are transformers' own, each text by itself; the numbers are summed in plain loops."""
    entries = [Entry(source="", place=place, text=text) for place, text in enumerate(TEXTS, 1)]
    profile, failures = profile_texts(embedded, entries)
    assert failures == []
    theirs = tf.AutoModel.from_pretrained(embedded.folder, attn_implementation="eager").eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(embedded.folder)
    numbers: dict[tuple[Head, str], list[float]] = {}
    for text in TEXTS:
        given = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            attentions = theirs(**given, output_attentions=True).attentions
        ids = given["input_ids"][0].tolist()
        labels, special = tokenizer.convert_ids_to_tokens(ids), [token_id in (101, 102) for token_id in ids]
        for layer, of_layer in enumerate(attentions):
            for head, weights in enumerate(of_layer[0].double().numpy()):
                for name, number in by_hand(ids, special, labels, weights.tolist()).items():
                    numbers.setdefault((Head(layer, head), name), []).append(float(number))
    names = {name for _, name in numbers}
    assert names >= {
        "self",
        "previous",
        "next",
        "cls",
        "sep",
        "punctuation",
        "distance",
        "entropy",
        "same_token",
    }
    for at, head in enumerate(profile.heads()):
        for name in names:
            assert profile.numbers(name)[at] == pytest.approx(np.mean(numbers[head, name]), abs=2e-5), (
                head,
                name,
            )


@pytest.mark.nightly
def test_induction_heads_of_the_profile_are_what_repetition_is_learned_by(smollm2):
    """Loss on the second half of repeated random tokens (Olsson et al. 2022), without the five heads with the largest numbers
    and without five others of the same layers, by the model's own language head."""
    profile = read_profile(BUNDLED / SMOLLM2)
    heads, scores = profile.heads(), profile.numbers("probe_induction")
    order = np.argsort(-scores)
    best = [heads[index] for index in order[:5]]
    others = [
        next(
            head for head in (Head(strongest.layer, at) for at in range(9)) if scores[heads.index(head)] < 0.1
        )
        for strongest in best
    ]
    trace = trace_repeated(smollm2, n_token=50, seed=99)
    own = np.flatnonzero(~trace.tokens.is_special)
    second = own[len(own) // 2 :]

    def loss(off):
        changes = [ScaledOutput(layer=head.layer, head=head.head, factor=0.0) for head in off]
        states = smollm2.trace_tokens(trace.tokens, interventions=changes).last_hidden_state
        logits = token_logits(smollm2, torch.tensor(states[second - 1])).float()
        chosen = torch.tensor(trace.tokens.ids[second])
        return float(torch.nn.functional.cross_entropy(logits, chosen))

    whole, without_best, without_others = loss([]), loss(best), loss(others)
    assert without_best - whole > 3 * abs(without_others - whole)
    assert without_best > whole + 0.3


@pytest.mark.parametrize("name", [EMBEDDED, SMOLLM2])
def test_they_are_of_the_models_and_sentences_that_are_bundled(name, request):
    profile = read_profile(BUNDLED / name)
    model = request.getfixturevalue({EMBEDDED: "embedded", SMOLLM2: "smollm2"}[name])
    assert dict(profile.about)["weights"] == dict(model.weights_sha256)
    assert profile.n_text == len(sentences(bundled())) and profile.n_failed == 0
    assert profile.n_passed == profile.n_verified > 0
    assert [head for kind in profile.kinds for head in profile.heads(kind)] == list(model.probe().heads())
    assert len(profile.relations(profile.heads()[0])) > 20


@pytest.mark.parametrize("name", [EMBEDDED, SMOLLM2])
def test_names_are_of_numbers_that_are_large_beyond_their_interval(name):
    """Row by row of the file; [CLS] is the first token, and a relation needs 20 words and more than any fixed distance finds."""
    known = names_of(read_profile(BUNDLED / name))
    for row in pq.read_table(BUNDLED / name / "heads.parquet").to_pylist():
        expected = {probe.called: row[key] for key, probe in PROBES.items() if (row[f"{key}_low"] or 0) > 0.5}
        for key, called in NAMES.items():
            if (row[f"{key}_low"] or 0) > 0.5:
                expected.setdefault(called, row[key])
        if "[CLS]" in expected:
            expected.pop("first token", None)
        for value in row["relations"]:
            if value["words"] >= 20 and value["low"] > 0.5 and value["low"] > value["offset_accuracy"]:
                expected[f"links {linked_words(value['relation'], value['direction'])}"] = value["accuracy"]
        names = known[Head(row["layer"], row["head"])]
        assert {name.called: name.share for name in names} == expected
        assert all(0.5 < name.low <= name.share <= name.high for name in names)
        assert [name.called for name in names if name.relation] == [
            value for value in expected if value.startswith("links ")
        ]


def test_probes_of_a_profile_are_those_of_the_model(embedded):
    probes = probes_of(read_profile(BUNDLED / EMBEDDED), "encoder")
    expected = probe_heads(embedded)["encoder"]
    assert (probes.n_token, probes.n_text) == (expected.n_token, expected.n_text)
    for name in PROBES:
        np.testing.assert_allclose(probes.means[name], expected.means[name], atol=1e-5)
        np.testing.assert_allclose(probes.spreads[name], expected.spreads[name], atol=1e-5)
    for kind in ("decoder", "cross"):
        assert probes_of(read_profile(BUNDLED / EMBEDDED), kind) is None


def test_the_labels_are_of_the_bundled_sentences():
    path = BUNDLED.parent / "sentences.conllu"
    with path.open(encoding="utf-8") as lines:
        texts = [text for _, text, _ in read_conllu(lines)]
    assert texts == [" ".join(text.split()) for _, text in sentences(bundled())]
