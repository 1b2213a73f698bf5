"""How outcomes and sets of prompts are chosen and run, and findings of queries and keys of two texts: found again in plain Python."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.effects.outcome import LAST, ClassAnswer, Similarity, TokenAnswer, TokenState
from attnviz.effects.prompts import COLUMNS, prompts_of
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.figures.numbers import number_text, share_text
from attnviz.records import Axis
from tests import hand_made, small_records
from tests.app.screen import facts, unescaped
from tests.drawing import MARKS, draw_few
from tests.drawn_parts import drawn
from ui.choice.selection import Selection
from ui.rooms.cause import outcome, own_run, prompts
from ui.rooms.cause.heads_off import grid, over_set
from ui.rooms.cause.heads_off.screen import AblatedRun
from ui.rooms.generate import writing
from ui.words import findings, headline, score_formula

pytestmark = MARKS
draw_few(12)

A = Selection(model="m", text="I saw the door.", layer=1, head=0)
TOKENS = hand_made.tokens(["[CLS]", "cat", "door", "it"])


# Outcomes

MODEL = SimpleNamespace(
    head="head",
    classifier=SimpleNamespace(config=SimpleNamespace(id2label={0: "BAD", 1: "GOOD"})),
    name_of=lambda number: f"␣t{number}",
)


def view_of(**changes):
    given_ = {
        "selection": A,
        "trace": SimpleNamespace(last_tokens=TOKENS, kinds=("encoder",), tokens=TOKENS),
        "last_query": 2,
        "kind": "encoder",
        "theme": "light",
    }
    return SimpleNamespace(**given_ | changes)


def controls_of(chosen, model=MODEL, own="own"):
    prediction = SimpleNamespace(ids=np.array([7, 3, 9]), probabilities=np.array([0.5, 0.25, 0.125]))
    asked: dict[str, object] = {}

    def token_id(model, token):
        if not token.startswith("␣t"):
            raise SelectionError("no such token")
        return int(token[2:])

    patches = {
        "_model": lambda view: model,
        "predict": lambda model, trace, at, top: asked.update(at=at) or prediction,
        "token_id": token_id,
        "likelier_form": lambda model, trace, at, token: asked.setdefault("forms", []).append((at, token)),
        "own_answer": lambda given, trace, *at: f"{own}{at}" if given is model and (own or at) else None,
        "offer_language_model": lambda *_, **__: asked.update(is_offered=True),
    }
    with drawn(outcome, **patches) as page:
        outcome.controls(view_of(), chosen)
        kinds = page.all("segmented_control")[0]
        first = {
            kind: page.click(kinds.named["take"], kind)["outcome"]
            for kind in kinds.given[1]
            if kind != kinds.named["default"]
            or kind not in ("answer", "class")  # a click on what is chosen is none
        }
    return page, kinds, first, asked


CHOSEN = [
    Similarity(text="A door."),
    TokenState(position=1, by="turn"),
    TokenState(position=LAST, by="length"),
    TokenState(position=9),
    TokenAnswer(position=1, token="␣t3"),
    TokenAnswer(position=2, token="␣t8", by="rank"),
    TokenAnswer(position=LAST, token="␣t3", against="␣t9"),
    ClassAnswer(label="GOOD"),
    ClassAnswer(label="OLD"),
]


@pytest.mark.parametrize("chosen", CHOSEN, ids=str)
@given(st.booleans(), st.booleans(), st.sampled_from(["", "own"]))
def test_how_an_outcome_is_chosen(chosen, has_head, has_classes, own):
    model = SimpleNamespace(**vars(MODEL) | {"head": "head" if has_head else None})
    model.classifier = MODEL.classifier if has_classes else None
    page, kinds, first, asked = controls_of(chosen, model, own)
    kind = {Similarity: "similarity", TokenAnswer: "answer", ClassAnswer: "class"}.get(
        type(chosen)
    ) or chosen.by
    offered = ["similarity", "turn", "length", *["answer"] * has_head, *["class"] * has_classes]
    assert set(kinds.given[1]) == {*offered, kind} and kinds.named["default"] == kinds.named["tied"] == kind
    assert asked.get("is_offered", False) == (not has_head)
    assert first["similarity"] == ""
    assert (first["turn"], first["length"]) == tuple(
        str(TokenState(position=2, by=name)) for name in ("turn", "length")
    )
    if has_head and "answer" in first:
        assert first["answer"] == (f"{own}()" if own else "(2,)")
    if has_classes and "class" in first:
        assert first["class"] == str(ClassAnswer(label="BAD"))

    places = [call for call in page.all("number_input") if call.given[0].startswith("At token")]
    assert bool(places) == isinstance(chosen, TokenState | TokenAnswer)
    if places:
        [field] = places
        at = 3 if chosen.position in (LAST, 9) else chosen.position
        assert field.given == ("At token (0–3)", 0, 3) and field.named["value"] == field.named["tied"] == at
        for place in range(4):
            moved = page.click(field.named["take"], place)["outcome"]
            position = LAST if place == 3 else place
            fields = {name: getattr(chosen, name) for name in type(chosen).__slots__ if name != "position"}
            assert moved == str(type(chosen)(position=position, **fields))
    if isinstance(chosen, Similarity):
        [text] = page.all("text_input")
        assert text.named["value"] == "A door."
        assert page.click(text.named["take"], "It.")["outcome"] == str(Similarity(text="It."))
        assert page.click(text.named["take"], "  ")["outcome"] == ""
    if isinstance(chosen, ClassAnswer):
        [classes] = page.all("selectbox")
        labels = ["BAD", "GOOD"] * has_classes
        assert classes.given[1] == (labels if chosen.label in labels else [chosen.label, *labels])
        assert page.click(classes.named["take"], "BAD")["outcome"] == str(ClassAnswer(label="BAD"))
    if isinstance(chosen, TokenAnswer):
        assert asked["at"] == at and set(asked["forms"]) == {
            (at, token) for token in (chosen.token, chosen.against) if token
        }
        measured = page.all("segmented_control")[1]
        assert measured.named["tied"] == ("difference" if chosen.against else chosen.by)
        likely = {"␣t7": 0.5, "␣t3": 0.25, "␣t9": 0.125}
        other = next(token for token in likely if token != chosen.token)
        for what in ("difference", "probability", "rank"):
            fields = {"against": other} if what == "difference" else {"by": what}
            expected = TokenAnswer(position=chosen.position, token=chosen.token, **fields)
            assert page.click(measured.named["take"], what)["outcome"] == str(expected)
        boxes = page.all("selectbox")
        assert [box.given[0] for box in boxes] == ["Token", *["Minus"] * bool(chosen.against)]
        for box, name in zip(boxes, ("token", "against"), strict=False):
            assert box.named["accept_new_options"]
            token = getattr(chosen, name)
            assert box.given[1] == [*likely, *[token] * (token not in likely)]
            assert box.given[1][box.named["index"]] == token
            for value in box.given[1]:
                written = box.named["format_func"](value)
                assert written == (f"{value}\u2003{share_text(likely[value])}" if value in likely else value)
                fields = {one_name: getattr(chosen, one_name) for one_name in ("token", "against", "by")}
                expected = TokenAnswer(position=chosen.position, **fields | {name: value})
                assert page.click(box.named["take"], written)["outcome"] == str(expected)


@pytest.mark.parametrize("against", [None, "␣t9"])
def test_the_likelier_form_of_a_token_is_offered(against):
    chosen = TokenAnswer(position=1, token="t3", against=against)
    form = SimpleNamespace(asked="t3", token="␣t3", asked_probability=0.01, probability=0.5)
    with drawn(outcome, _model=lambda view: MODEL, likelier_form=lambda *_: form) as page:
        outcome._offer_likelier(
            view_of(), 1, "t3", lambda token: TokenAnswer(position=1, token=token, against=against), key="k"
        )
    assert facts(page.texts[0]).numbers == ("1.0%", "50.0%") and facts(page.texts[0]).quoted == ("t3", "␣t3")
    [button] = page.all("button")
    assert button.named["kwargs"] == {"outcome": str(TokenAnswer(position=1, token="␣t3", against=against))}
    with drawn(outcome, _model=lambda view: MODEL, likelier_form=lambda *_: None) as page:
        outcome._offer_likelier(view_of(), 1, "t3", lambda token: chosen, key="k")
    assert not page.calls


@pytest.mark.parametrize("bundle", ["", "sha"])
@pytest.mark.parametrize("own", [None, "own"])
def test_the_outcome_until_one_is_chosen(bundle, own):
    with drawn(
        outcome, _model=lambda view: MODEL, own_answer=lambda model, trace: own if model is MODEL else "?"
    ):
        by_default = outcome.outcome_of(view_of(selection=A.but(bundle=bundle)))
        written = outcome.outcome_of(view_of(selection=A.but(outcome=str(Similarity(text="It.")))))
    assert by_default == (own if own and not bundle else Similarity(text="I saw the window."))
    assert written == Similarity(text="It.")


@given(
    st.sampled_from(
        [
            Similarity(text="A door."),
            TokenAnswer(position=2, token="it", by="rank"),
            TokenAnswer(position=2, token="it"),
        ]
    ),
    st.sampled_from([1.0, 2.0, 2.0001]),
    st.sampled_from([1.0, 2.0, 3.0]),
)
def test_what_becomes_of_an_outcome(chosen, before, after):
    sentence = unescaped(outcome.change(chosen, TOKENS, before, after))
    written = (lambda number: f"{number:,.0f}") if getattr(chosen, "by", "") == "rank" else number_text
    first, last = written(before), written(after)
    if first == last:
        assert "stays" in sentence and sentence.endswith(f" {first}")
    else:
        assert sentence.endswith(f" from {first} to {last}")
        if written is number_text:
            assert ("falls" in sentence, "rises" in sentence) == (after < before, after > before)


@pytest.mark.parametrize(
    ("n_token", "n_parameter", "n_counted"),
    [(100, 10_800_000, 100), (100, 21_600_000, 200), (7, 5_400_000, 4)],
)
def test_tokens_count_by_what_they_pass(n_token, n_parameter, n_counted):
    network = SimpleNamespace(num_parameters=lambda exclude_embeddings: n_parameter * exclude_embeddings)
    with drawn(own_run, cache=SimpleNamespace(model=lambda name: SimpleNamespace(network=network))):
        assert own_run.OwnRun(view=view_of()).counted(n_token) == n_counted


def test_a_run_of_an_outcome_is_told_apart_by_it():
    run = own_run.MeasuredRun(view=view_of(), outcome=Similarity(text="A."))
    with drawn(own_run, offer=lambda name: SimpleNamespace(name=f"{name}!"), job=lambda *given_: given_):
        assert run.given == ("m!", run.view.trace, str(run.outcome))
        assert run.job("name", (1,), list) == ("name", (A.source, str(run.outcome), 1), list)
        assert run.request("label", 2).key == (A.source, str(run.outcome), 2)
    assert "A." in run.measured
    with pytest.raises(SelectionError, match="It was asked for; an opened bundle"):
        own_run.check_can_run(view_of(selection=A.but(bundle="sha")), "It was asked for")
    own_run.check_can_run(view_of(), "It was asked for")


# Sets of prompts

ROWS = [("a b", "a c", " x", " y"), ("", "", "", ""), ("d e", "d f", " x", " y"), ("g h", "g i", " x", " y")]


@given(st.lists(st.sampled_from([None, "Line is refused.", 0.5]), min_size=3, max_size=3), st.booleans())
def test_what_has_come_of_a_set(results, is_finished):
    prompt_set = prompts_of(enumerate(ROWS, 1))
    tokenized = []
    model = SimpleNamespace(tokenize=lambda text, template: tokenized.append((text, template)) or "tokens")
    shown = []
    with drawn(
        prompts,
        cache=SimpleNamespace(model=lambda name: model),
        is_there=lambda work, n, doing, *, key, result: shown.append(doing) or result() or is_finished,
    ) as page:
        run = prompts.SetRun(view=view_of(), prompts=prompt_set, work=SimpleNamespace(results=results))
        is_done = run.is_done("Patching", lambda: shown.append("drawn"))
        known = {
            line: number for line, number in zip((1, 3, 4), results, strict=True) if isinstance(number, float)
        }
        assert run.results == known and list(run.pairs) == list(known)
        assert [pair.clean for pair in run.pairs.values()] == [ROWS[line - 1][0] for line in known]
        assert run.refused == [
            *prompt_set.refused,
            *(result for result in results if isinstance(result, str)),
        ]
        assert len(prompt_set.refused) == 1
        if known:
            assert run.tokens == "tokens" and tokenized == [(ROWS[min(known) - 1][0], "plain")]
    assert shown == ["Patching 3 pairs", *["drawn"] * bool(known)]
    assert is_done == (is_finished and bool(known))
    assert bool(page.all("error")) == (is_finished and not known)


def test_an_experiment_has_a_call_for_each_pair():
    prompt_set = prompts_of(enumerate(ROWS, 1))
    made = {}

    def experiment() -> None: ...

    with drawn(
        prompts,
        offer=lambda name: SimpleNamespace(name=f"{name}!"),
        job=lambda name, key, calls: made.update(name=name, key=key, calls=calls()),
    ):
        prompts.set_run(view_of(), prompt_set, experiment, "key", lambda: ("given",))
    assert made["name"] == "experiments" and made["key"] == ("m", prompt_set.pairs, (1, 3, 4), "key")
    assert [call[1][:5] for call in made["calls"]] == [
        ("m!", line, experiment, pair, "given")
        for line, pair in zip((1, 3, 4), prompt_set.pairs, strict=True)
    ]


@pytest.mark.parametrize("own", [(), (("a", "b", "c", "d"),)])
@pytest.mark.parametrize(("kinds", "mask"), [(("decoder",), None), (("encoder",), "[MASK]")])
@pytest.mark.parametrize("problem", ["", "wrong"])
def test_the_table_of_pairs(own, kinds, mask, problem):
    session = prompts.OwnPrompts(rows=own, problem=problem, version=3)
    model = SimpleNamespace(name="m", head="head", mask_label="[MASK]")
    asked = []

    def made(rows, template):
        asked.append(([*rows], template))
        return "set"

    with drawn(
        prompts,
        cache=SimpleNamespace(model=lambda name: model),
        of_session=lambda kind: session,
        prompts_of=made,
    ) as page:
        view = view_of(trace=SimpleNamespace(kinds=kinds))
        assert prompts.table(view) == "set"
        model.head = None
        offered = []
        with drawn(
            prompts,
            cache=SimpleNamespace(model=lambda name: model),
            offer_language_model=lambda *_, **__: offered.append(1),
        ):
            assert prompts.table(view) is None and offered == [1]
    first = (
        [tuple(value.format(mask) for value in row) for row in prompts.OF_BLANKS]
        if mask
        else list(prompts.OF_DECODERS)
    )
    rows = list(own) or first
    assert asked == [([*enumerate(rows, 1)], "plain")]
    [editor] = page.all("data_editor")
    assert editor.given[0].values.tolist() == [list(row) for row in rows] and list(
        editor.given[0].columns
    ) == list(COLUMNS)
    assert editor.named["key"] == "prompt_table_3"
    [expander] = page.all("expander")
    assert expander.given[0] == f"{len(rows)} pair{'s' * (len(rows) != 1)} of prompts"
    assert [element.given[0] for element in page.all("error")] == ["wrong"] * bool(problem)


def test_pairs_are_of_models_that_read_one_text():
    model = SimpleNamespace(name="bart", head="head", mask_label="[MASK]")
    view = view_of(trace=SimpleNamespace(kinds=("encoder", "decoder", "cross")))
    with (
        drawn(prompts, cache=SimpleNamespace(model=lambda name: model)),
        pytest.raises(UnsupportedArchitectureError, match="each of which is one text; bart reads two"),
    ):
        prompts.table(view)
    assert not prompts.is_set(view) and prompts.is_set(view_of(selection=A.but(prompts="set")))


@pytest.mark.parametrize(
    ("data", "n_pair", "problem"),
    [(b"a b,a c,x,y\n,,,\nd e,d f,x", 1, "Line 3"), (b"", 0, "no row"), (None, None, "")],
)
def test_pairs_from_a_file(data, n_pair, problem):
    session = prompts.OwnPrompts(rows=(("1", "2", "3", "4"),), problem="before")
    file = data if data is None else SimpleNamespace(getvalue=lambda: data)
    forgotten = []
    with (
        drawn(prompts, of_session=lambda kind: session, uploads=SimpleNamespace(forget=forgotten.append)),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(prompts, "st", SimpleNamespace(session_state={"prompts_file_0": file}))
        prompts._take_file()
    if data is None:
        assert session.version == 0 and session.problem == "before"
        return
    assert session.version == 1 and forgotten == [file] and len(session.rows) == 1
    if n_pair:
        assert session.rows == (("a b", "a c", "x", "y"),) and problem in session.problem
    else:
        assert session.rows == (("1", "2", "3", "4"),) and session.problem != "before"


@pytest.mark.parametrize("has_set", [True, False])
@pytest.mark.parametrize("are_known", [True, False])
@pytest.mark.parametrize("ablation", ["zero", "mean"])
def test_heads_are_switched_off_on_a_set(has_set, are_known, ablation):
    view = view_of(selection=A.but(ablation=ablation))
    asked = []

    def set_run(view, pairs, experiment, key, given_):
        return "run", experiment, key, given_()

    with (
        drawn(
            over_set,
            means_are_there=lambda run, asked_for, *, key: asked.append(asked_for) or are_known,
            references=lambda run: asked.append("references"),
            prompts=SimpleNamespace(table=lambda view: "pairs" if has_set else None, set_run=set_run),
        ),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(AblatedRun, "means", lambda self, of: f"means of {of}")
        on_set = over_set.run_of(view)
    assert asked == ["references", *[ablation] * has_set]
    if has_set and are_known:
        assert on_set[0] == "run" and on_set[3] == (f"means of {ablation}",) and on_set[2][1] == ablation
    else:
        assert on_set is None


@pytest.mark.parametrize(
    ("ablation", "is_there", "n_asked"), [("zero", False, 0), ("mean", True, 1), ("mean", False, 1)]
)
def test_means_are_waited_for_where_they_are_given(ablation, is_there, n_asked):
    asked = []
    run = SimpleNamespace(means_job=lambda: "job", n_means=lambda: 5, ablation=ablation)
    with drawn(grid, is_there=lambda *given_, **named: asked.append((given_, named)) or is_there) as page:
        assert grid.means_are_there(run, ablation, key="k", request="r") == (ablation == "zero" or is_there)
        grid.references(run)
    assert len(asked) == n_asked and all(
        value[0][:2] == ("job", 5) and value[1] == {"key": "k_means_act", "request": "r"} for value in asked
    )
    assert bool(page.all("text_area")) == (ablation == "mean")


# Writing


@given(st.lists(st.sampled_from(["done", "running", "refused", "failed"]), min_size=1, max_size=3), st.data())
def test_texts_that_are_written(states, data):
    class Refused(SelectionError):
        pass

    texts = [
        SimpleNamespace(
            name=f"text {at}",
            is_refused=state == "refused",
            work=SimpleNamespace(
                finished=state == "done",
                error={"refused": Refused("no"), "failed": ValueError("x")}.get(state),
                told=lambda at=at: [SimpleNamespace(label=f"␣{at}")],
            ),
        )
        for at, state in enumerate(states)
    ]
    shown = data.draw(st.integers(0, len(texts) - 1))
    waited = []
    view = view_of(trace=SimpleNamespace(tokens=SimpleNamespace(text="cat")))

    def show_jobs(jobs, *doing, result, **named):
        waited.extend(jobs)
        result()

    with drawn(writing, show_jobs=show_jobs) as page:
        if states[shown] == "refused":
            with pytest.raises(Refused):
                writing.are_there(view, texts[shown], texts)
            return
        assert writing.are_there(view, texts[shown], texts) == (states[shown] == "done")
    waiting = [at for at, state in enumerate(states) if state in ("running", "failed")]
    assert waited == [texts[at].work for at in waiting]
    refused = [f"text {at}: no" for at, state in enumerate(states) if state == "refused"]
    being_written = shown if shown in waiting else (waiting or [None])[0]
    assert [*map(unescaped, page.texts)] == refused + ([f"cat **{being_written}**"] if waiting else [])


# Queries and keys of two texts


@given(
    hnp.arrays(
        np.float32, (3, 4), elements=st.integers(0, 6).map(lambda number: number / 8), fill=st.nothing()
    ),
    st.integers(0, 2),
    st.integers(0, 3),
    st.sampled_from(["weights", "norms", "rollout"]),
)
@pytest.mark.stand_ins
def test_findings_of_cross_attention(weights, query, key, measure):
    """A query is named as among the queries, a key as among the keys, whatever stands there in the other text."""
    queries = Axis.of(hand_made.tokens([f"q{at}" for at in range(3)]))
    keys = Axis.of(hand_made.tokens(["<s>", *(f"k{at}" for at in range(1, 4))]))
    pattern = small_records.pattern(
        weights.tolist(), queries=queries, keys=keys, kind="cross", measure=measure
    )
    strongest = findings.strongest_key(pattern, query)
    best = [float(weight) for weight in weights[query, 1:]]
    assert strongest == 0 or weights[query, strongest] == max(best)
    stated = facts(findings.finding(pattern, query, key))
    assert stated.quoted[:2] == (f"q{query}", keys.labels[key]) and set(stated.quoted[1:]) <= {*keys.labels}
    assert set(stated.quoted[2:]) <= {
        label for at, label in enumerate(keys.labels) if weights[query, at] == weights[query].max()
    }
    told = facts(headline.headline_words(pattern, query, key))
    assert told.quoted[0] == f"q{query}" and set(told.quoted[1:]) <= {*keys.labels}
    if measure == "weights" and weights[query].any():
        assert any(
            weights[query, keys.labels.index(label)] == weights[query].max() for label in told.quoted[1:]
        )
    received = facts(findings.key_finding(pattern, key))
    assert keys.labels[key] in received.quoted
    givers = [quoted for quoted in received.quoted if quoted != keys.labels[key]]
    tied = [f"q{at}" for at in range(3) if weights[at, key] == weights[:, key].max() > 0]
    assert givers == (tied if len(tied) < 3 else tied[:1])
    assert ("and 2 others" in findings.key_finding(pattern, key)) == (len(tied) == 3)
    for position in (0, 2):
        alone = pattern.arranged(queries, keys.where(np.arange(4) != position))
        if position == key:
            assert findings.finding(alone, query, key) == f"“{keys.labels[key]}” is not shown."
            assert findings.key_finding(alone, key) == f"“{keys.labels[key]}” is not shown."
        part = pattern.arranged(queries.where(np.arange(3) != position), keys)
        if position == query:
            assert findings.finding(part, query, key) == f"“q{query}” is not shown."
            assert findings.strongest_key(part, query) == 0
    assert findings.group_name(keys, (1, 2)) == "“k1”"


def test_a_special_key_that_adds_little_is_a_key():
    queries, keys = (Axis.of(hand_made.tokens(labels)) for labels in (["q0", "q1"], ["<s>", "k1", "k2"]))
    sides = [
        small_records.pattern(cells, queries=queries, keys=keys, kind="cross", measure=measure)
        for cells, measure in (
            ([[0.8, 0.1, 0.1], [0.4, 0.3, 0.3]], "weights"),
            ([[0.1, 0.5, 0.2], [1, 1, 1]], "norms"),
        )
    ]
    assert facts(findings.special_note(*sides, 0, 1)).quoted == ("<s>", "k1")
    assert facts(findings.special_note(*sides, 0, 1)).numbers == ("20%",)


@pytest.mark.parametrize("scale", [None, 1.0])
@pytest.mark.parametrize("softcap", [None, 20.0])
@pytest.mark.parametrize("has_bias", [False, True])
def test_how_scores_differ_from_products_alone(scale, softcap, has_bias):
    sentence = score_formula.departures(scale, softcap, has_bias=has_bias)
    parts = ["multiplies by 1"] * bool(scale) + ["softcaps each score to 20 at most"] * bool(softcap)
    parts += ["adds a bias to each score"] * has_bias
    assert sentence == {0: "", 1: "{}", 2: "{} and {}", 3: "{}, {} and {}"}[len(parts)].format(*parts)
    query = np.zeros((2, 3, 4), dtype=np.float32)
    call = SimpleNamespace(
        query=query, scale=scale or 0.5, softcap=softcap, bias=np.ones(1) if has_bias else None
    )
    assert score_formula.layer_departures(call) == sentence
    assert score_formula.capped_latex("x", softcap) == (
        "x" if softcap is None else r"20 \tanh\!\left(\frac{x}{20}\right)"
    )


def test_how_pairs_are_counted():
    assert prompts.over_words(2, math.nan) == "mean over 2 pairs"
