"""Step by step: every number on the page, read back, is the model's at that very place."""

import re
from dataclasses import replace

import numpy as np
import pytest

from attnviz.figures.numbers import number_text
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    component,
    facts,
    figure,
    finding,
    numbers,
    open_bundle,
    open_page,
    unescaped,
)
from tests.tiers import first_gates
from ui.part import part_named

PAGE = "pages/step_by_step.py"
SENTENCES = (DOOR, "The bank of the river was steep, so nobody could land there.")
HEADS = ((0, 0), (3, 1), (5, 7))


@pytest.fixture(scope="module", params=[(text, head) for text in SENTENCES for head in HEADS], ids=str)
def walked(request, embedded):
    """The whole page for a sentence and a head, the model's trace, and the picked pair."""
    text, (layer, head) = request.param
    query, key = 6, 3
    at = open_page(PAGE, text=text, layer=layer, head=head, query=query, key=key, step=0)
    assert_no_exception(at)
    return at, embedded.trace(text), layer, head, query, key


def formulas(at) -> list[str]:
    return [element.value.strip("$\n ") for element in at.latex]


def all_words(at) -> str:
    return " ".join(unescaped(element.value) for element in [*at.markdown, *at.caption])


def recomputed(at) -> list[str]:
    """The lines that say how far what was worked out here is from the model's numbers."""
    return [line.value for line in at.markdown if line.value.startswith(":material/calculate:")]


def differing(at) -> list[str]:
    """The lines that say that the two do not match."""
    return [line.value for line in at.markdown if ":red[" in line.value]


def of_vectors(at) -> str:
    """The sentences on what a token's vector is made of."""
    [words] = [line.value for line in at.markdown if re.search(r"glossary\S*#vector ", line.value)]
    return words


def ingredients(at) -> list[str]:
    """What is added up for a token, as its picture names it."""
    return figure(at, "step_ingredients")["layout"]["yaxis"]["ticktext"]


def table(at, name: str):
    number = {"tokens": 0, "pair": 1, "softmax": 2, "mean": 3}[name]
    return at.dataframe[number].value


def cells(at, name: str) -> np.ndarray:
    return numbers(figure(at, f"step_{name}")["data"][0]["z"])


def largest_of(matrix: np.ndarray, columns: int) -> np.ndarray:
    """Of so many neighbours in a row the number farthest from 0, one by one."""
    return np.array(
        [[max(row[at : at + columns], key=abs) for at in range(0, len(row), columns)] for row in matrix]
    )


ROUNDED = 6e-3  # relative: three digits are written


def written(formula):
    """The numbers of a formula, each as it stands after the first sign that they are rounded."""
    rounded = formula.split(r"\approx", 1)[1].replace("−", "-").replace("- ", "-")
    return [float(match) for match in re.findall(r"-?\d+\.?\d*", rounded)]


def test_every_number_is_the_traces(walked):
    at, trace, layer, head, query, key = walked
    n = len(trace.tokens)

    assert table(at, "tokens")["token"].tolist() == list(trace.tokens.labels)
    assert table(at, "tokens")["id"].tolist() == trace.tokens.ids.tolist()

    q, k = trace.query(layer, head), trace.key(layer, head)
    np.testing.assert_array_equal(cells(at, "query_made"), q)
    np.testing.assert_array_equal(cells(at, "key_made"), k)
    np.testing.assert_array_equal(cells(at, "value_made"), trace.value(layer, head))

    [score] = [formula for formula in formulas(at) if formula.startswith(f"s_{{{query},{key}}}")]
    scale, dot, scaled = written(score)
    expected = trace.scores(layer, head)[query, key]
    assert scale == pytest.approx(32**-0.5, rel=ROUNDED)
    assert dot == pytest.approx(float(q[query].astype(np.float64) @ k[key]), rel=ROUNDED)
    assert scaled == pytest.approx(expected, rel=ROUNDED)
    np.testing.assert_allclose(cells(at, "pair"), [q[query], k[key], q[query] * k[key]], rtol=1e-6)
    products = table(at, "pair")
    np.testing.assert_allclose(products["product"], q[query].astype(np.float64) * k[key], rtol=1e-6)
    assert products["sum so far"].tolist() == np.cumsum(products["product"]).tolist()
    assert products["sum so far"].iloc[-1] == pytest.approx(expected * np.sqrt(32), abs=1e-4)
    np.testing.assert_array_equal(cells(at, "scores"), trace.scores(layer, head))

    np.testing.assert_array_equal(cells(at, "row_query"), q)
    np.testing.assert_array_equal(cells(at, "row_key"), k.T)
    np.testing.assert_array_equal(cells(at, "weights"), trace.weights(layer, head))
    weights = trace.weights(layer, head)[query]
    softmax = table(at, "softmax")
    if n <= 12:
        assert len(softmax) == n
        np.testing.assert_allclose(softmax["weight"], weights, rtol=1e-6)
        np.testing.assert_allclose(softmax["score"], trace.scores(layer, head)[query], rtol=1e-6)
    else:
        strongest = sorted(np.sort(softmax["weight"])[-11:])
        np.testing.assert_allclose(strongest, np.sort(weights)[-11:], rtol=1e-6)
    [shared] = [formula for formula in formulas(at) if formula.startswith(f"w_{{{query},{key}}}")]
    fraction, weight, largest = shared.split(r"\approx")[1:]
    assert float(largest) == pytest.approx(trace.scores(layer, head)[query].max(), rel=ROUNDED)
    assert weight.split(",")[0].strip() == number_text(float(weights[key]))
    total = fraction.strip().removesuffix("}").split("{")[-1]
    assert float(total) == pytest.approx(1 / weights.max(), rel=ROUNDED)

    mean = cells(at, "mean")
    np.testing.assert_allclose(mean[-1], trace.output(layer, head)[query], rtol=1e-6)

    outputs = np.concatenate([trace.output(layer, number) for number in range(12)], axis=1)
    np.testing.assert_array_equal(cells(at, "side_by_side"), largest_of(outputs, 4))  # 384 columns as 96
    frames = figure(at, "step_side_by_side")["layout"]["shapes"]
    assert [(frame["x0"], frame["x1"]) for frame in frames][1] == (8 * head - 0.5, 8 * head + 7.5)

    parts = cells(at, "heads")
    assert parts.shape[0] == 13
    # the sum normalised, Q, K, V, the score, the rows of scores and weights, the mean, W_O twice
    compared = recomputed(at)
    assert len(compared) == 10
    assert sum("LayerNorm" in line for line in compared) == 1
    assert sum("$W_O$" in line for line in compared) == 2
    assert not differing(at)


def test_the_layers_output_is_what_the_model_computed(walked, embedded):
    """Read from the model by a hook on its own module, by name."""
    at, trace, layer, _head, query, _ = walked
    import torch

    module = embedded.reference.encoder.layer[layer].attention
    noted = {}
    handles = [
        module.output.dense.register_forward_hook(
            lambda _, __, out: noted.update(output=out[0, query], whole=out[0])
        ),
        module.self.register_forward_pre_hook(lambda _, given: noted.update(hidden=given[0][0])),
    ]
    with torch.inference_mode():
        embedded.reference(**embedded.inputs(trace.tokens))
    for handle in handles:
        handle.remove()
    whole = noted["whole"].numpy()
    np.testing.assert_allclose(cells(at, "layer_output"), largest_of(whole, 4), atol=2e-5)
    parts = cells(at, "heads")  # pooled to what can be seen: compare the number that is farthest from 0
    assert np.abs(parts[-1]).max() == pytest.approx(float(noted["output"].abs().max()), rel=1e-4)
    assert np.abs(cells(at, "hidden")).max() == pytest.approx(float(noted["hidden"].abs().max()), rel=1e-4)


def test_walking(embedded):
    at = open_page(PAGE, step=1)
    for number in range(1, 9):
        assert [line.value.split(". ")[0] for line in at.subheader] == [str(number)]
        if number == 3:
            [made] = [line.value for line in at.markdown if "make three vectors" in line.value]
            named = [
                "**query**",
                "what it looks",
                "**key**",
                "what it can be found by",
                "**value**",
                "hands on",
            ]
            places = [made.index(words) for words in named]
            assert places == sorted(places)
        if number < 8:
            at.button(key="step_on").click().run()
            assert_no_exception(at)
    assert "step_on" not in [element.key for element in at.button]
    at.button_group(key="field_step").set_value(7).run()
    assert [line.value.split(". ")[0] for line in at.subheader] == ["7"]
    assert cells(at, "mean").size


def test_the_film_and_the_steps_have_each_their_heading_and_their_own_buttons():
    at = open_page(PAGE, step=4)
    assert len(at.header) == 2
    assert component(at, "head_film")["rows"]
    assert [element.label for element in at.button if "step" in element.label.lower()] == []


def test_shapes_are_written_on_the_matrices():
    at = open_page(PAGE, text=DOOR, step=3)
    titles = {
        name: figure(at, f"step_{name}")["layout"]["title"]["text"]
        for name in ("query_given", "query_weight", "query_made")
    }
    assert titles["query_given"].endswith("11 × 384")
    assert titles["query_weight"].endswith("384 × 32")
    assert titles["query_made"].endswith("11 × 32")


@pytest.mark.parametrize("layer", [0, 3])
def test_the_first_vectors_are_the_models(layer, embedded):
    """The mean and the spread of the sum, and M at layer 0, worked out by torch from the model's own tables."""
    import torch

    at = open_page(PAGE, text=DOOR, layer=layer, head=1, query=7, step=2)
    assert_no_exception(at)
    tables, ids = embedded.network.embeddings, torch.tensor(embedded.tokenize(DOOR).ids)
    with torch.inference_mode():
        summed = tables.word_embeddings(ids) + tables.token_type_embeddings.weight[0]
        summed = summed + tables.position_embeddings.weight[: len(ids)]
        first = tables.LayerNorm(summed).numpy()
    [formula] = [formula for formula in formulas(at) if r"\mathrm{norm}" in formula]
    mean, _, spread = written(formula)  # between them stands the token's number
    assert mean == pytest.approx(float(summed[7].mean()), rel=ROUNDED)
    assert spread == pytest.approx(float(summed[7].std(unbiased=False)), rel=ROUNDED)
    [compared] = recomputed(at)
    assert "LayerNorm" in compared
    assert facts(compared).numbers[0] == "11"  # tokens
    is_first = np.allclose(cells(at, "hidden"), largest_of(first, 4), atol=1e-5)
    assert is_first == (layer == 0)
    assert facts(of_vectors(at)).has("3", "0", "2") == (layer == 3)  # what reads, and what has made it


def test_a_step_that_differs_from_the_model_says_so(monkeypatch, embedded):
    """The same checks on a page whose sums, queries and weights are those of another model."""
    import attnviz.model.anatomy

    real = attnviz.model.anatomy.normalisation_of
    monkeypatch.setattr(
        attnviz.model.anatomy,
        "normalisation_of",
        lambda *given: replace(real(*given), made=given[2] + 0.01 * np.abs(given[2]).max()),
    )
    at = open_page(PAGE, text="Another door creaked.", layer=1, head=1, step=2)
    [differs] = differing(at)
    assert "LayerNorm" in differs
    assert not recomputed(at)


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_a_decoder_adds_its_positions(kind, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bart")))
    from attnviz.model.catalogue import offers

    own = [offer.name for offer in offers() if "bart" in offer.name][-1]
    at = open_page(PAGE, model=own, text="the cat sat", second="a door", kind=kind, step=2)
    assert_no_exception(at)
    assert "position" in ingredients(at)


@pytest.mark.parametrize(("name", "third"), [("bert", ["segment"]), ("gpt2", []), ("roberta", ["constant"])])
def test_what_is_added_to_a_token_is_said_of_its_family(name, third, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(name)))
    at = open_page(PAGE, model=name, text="the cat sat", step=2)
    assert_no_exception(at)
    assert ("causal mask" in of_vectors(at)) == (name == "gpt2")  # which tells one order from another
    assert ("egment" in all_words(at)) == (name == "bert")
    assert sorted(ingredients(at)) == sorted(["token", "position", *third, "sum"])


@pytest.mark.parametrize("step", first_gates(*range(1, 9)))
def test_every_step_names_its_source(step):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, step=step)
    sources = " ".join(element.value for element in at.caption)
    assert re.search(r"et al\. \d{4}, arXiv:\d{4}\.\d{5}", sources)
    assert "softcap" not in sources  # which this model has not


@pytest.mark.parametrize("step", first_gates(*range(1, 9)))
def test_at_most_four_sentences_say_what_a_step_is(step):
    at = open_page(PAGE, text=DOOR, step=step)
    texts = [
        element.value
        for element in at.markdown
        if element.value[:2] != "**" and element.value not in recomputed(at)
    ]
    texts.remove(part_named("Step by step").question)
    [words] = [text for text in texts if len(text) > 60 and not text.startswith("<style")]
    words = re.sub(r'\]\(\S+ ".*?"\)', "]", words)  # what a link's tooltip says is not the step's
    assert 1 <= len(re.findall(r"[.!?](?:\s|$)", words)) <= 4


CAUSAL = ("gpt2", "llama", "opt", "olmo", "bitnet", "deepseek-v3")


def open_family(monkeypatch, folder, **params):
    """The page with a tiny model of one family."""
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    at = open_page(PAGE, model=folder.name, **{"text": "the cat sat"} | params)
    assert_no_exception(at)
    assert not at.error
    return at


@pytest.mark.parametrize(
    ("name", "kind"),
    first_gates(
        *(("t5", "decoder"), ("gpt2", ""), ("llama", ""), ("bart", ""), ("bart", "cross"), ("t5", "")),
        *(("m2m-100", ""), ("opt", ""), ("olmo", ""), ("bitnet", ""), ("deepseek-v3", ""), ("albert", "")),
    ),
)
def test_other_families(name, kind, checkpoint, monkeypatch):
    folder = checkpoint(name)
    second = "a door" if name in ("bart", "t5", "m2m-100") else ""
    at = open_family(monkeypatch, folder, second=second, step=0, query=0, **({"kind": kind} if kind else {}))
    assert not differing(at)
    assert ("may not see are left empty" in all_words(at)) == (kind == "decoder" or name in CAUSAL)
    assert ("keys and values from the encoder's" in all_words(at)) == (kind == "cross")


@pytest.mark.parametrize(
    ("name", "norm", "is_followed", "has_positions"),
    [
        ("t5", r"r_i = ", True, False),
        ("llama", r"r_i = ", True, False),
        ("gpt2", r"\mu_i", True, True),
        ("albert", r"\mu_i", True, True),
        ("marian", "", True, True),
        ("m2m-100", "", False, False),
        ("opt", "", False, False),
    ],
)
def test_what_layer_0_reads(name, norm, is_followed, has_positions, checkpoint, monkeypatch):
    at = open_family(monkeypatch, checkpoint(name), layer=0, step=2)
    assert ("position" in ingredients(at)) == has_positions
    normalised = [formula for formula in formulas(at) if r"\mathrm{norm}" in formula]
    assert len(normalised) == bool(norm)
    assert not normalised or norm in normalised[0]
    assert bool(recomputed(at)) == is_followed
    assert not differing(at)


def test_t5_s_product_and_bias_add_up_to_the_score(checkpoint, tiny_model, monkeypatch):
    """Beside the model's own numbers: its projections by name and its table of biases by transformers."""
    import torch

    folder = checkpoint("t5")
    at = open_family(monkeypatch, folder, text="the cat sat on it", layer=2, head=1, query=1, key=4, step=4)
    model = tiny_model("t5")
    trace = model.trace("the cat sat on it")
    attention = model.reference.encoder.block[2].layer[0].SelfAttention
    first = model.reference.encoder.block[0].layer[0].SelfAttention
    given = {}
    handle = attention.register_forward_pre_hook(lambda _, inputs: given.update(hidden=inputs[0][0]))
    with torch.inference_mode():
        model.reference(**model.inputs(trace.tokens, trace.target_tokens))
        handle.remove()
        heads = [part(given["hidden"]).unflatten(-1, (2, 5))[:, 1] for part in (attention.q, attention.k)]
        product = float(heads[0][1] @ heads[1][4])
        bias = float(first.compute_bias(6, 6)[0, 1, 1, 4])
    [score] = [formula for formula in formulas(at) if formula.startswith("s_{1,4}")]
    assert "+ b_{1,4}" in score
    scale, dot, shown_bias, shown_score = written(score)
    assert abs(bias) > 0.01
    assert scale * dot == pytest.approx(product, rel=ROUNDED)
    assert shown_bias == pytest.approx(bias, rel=ROUNDED)
    assert shown_score == pytest.approx(product + bias, rel=ROUNDED)
    [compared] = recomputed(at)
    assert facts(compared).numbers[0] == number_text(shown_score)


def test_the_pair_is_picked_here():
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, step=4)
    assert facts(finding(at)).quoted == ("it", "door")
    at.selectbox(key="field_key").select(3).run()
    assert_no_exception(at)
    assert facts(finding(at)).quoted == ("it", "watching")
    assert [formula for formula in formulas(at) if formula.startswith("s_{7,3}")]


def test_what_is_not_listed_of_a_long_text_is_counted(embedded):
    text = "the old door of the house by the river opened and nobody was watching it when the cat sat"
    at = open_page(PAGE, text=text, layer=3, head=1, query=7, step=7)
    assert_no_exception(at)
    trace = embedded.trace(text)
    weights, output = trace.weights(3, 1)[7], trace.output(3, 1)[7]
    rest = np.sort(weights)[:-12].sum()
    assert facts(all_words(at)).has("12", str(len(weights) - 12), f"{rest:.1%}")
    drawn = cells(at, "mean")
    assert len(drawn) == 12 + 2
    ticks = figure(at, "step_mean")["layout"]["yaxis"]["ticktext"]
    assert len(ticks) == 12 + 2 and ticks[12:] == [f"{len(weights) - 12} others", "output"]
    np.testing.assert_allclose(drawn[:-1].sum(axis=0), output, atol=1e-5)
    strongest = np.sort(np.argsort(-weights)[:12])
    np.testing.assert_allclose(drawn[:12], weights[strongest, None] * trace.value(3, 1)[strongest], rtol=1e-5)
    np.testing.assert_allclose(
        drawn[12], np.delete(weights, strongest) @ np.delete(trace.value(3, 1), strongest, axis=0), atol=1e-5
    )


def test_a_step_says_what_goes_in_and_comes_out():
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, step=0)
    lines = [element.value for element in at.markdown if element.value.startswith("**In:**")]
    assert len(lines) == 8
    sizes = [[facts(side).numbers for side in line.split("**Out:**")] for line in (*lines[1:3], lines[-1])]
    assert sizes == [
        [("11",), ("11", "384")],
        [("11", "384"), ("11", "32") * 3],
        [("12", "11", "32"), ("11", "384")],
    ]


@pytest.mark.parametrize("step", first_gates(*range(1, 9)))
def test_a_bundle_has_the_steps_that_need_no_model(step, door_bundle):
    at = open_bundle(open_page(PAGE), door_bundle)
    at.button_group(key="field_step").set_value(step).run()
    assert_no_exception(at)
    assert at.subheader[0].value.startswith(f"{step}. ")
    assert bool(at.info) == (step in (2, 3, 8))  # which says that the step needs the model
    assert not differing(at)
