"""Arguments of another type are refused by every public function, before anything runs, with what to pass instead."""

import importlib
import re
from collections import UserDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import attnviz
from attnviz.arguments import typed
from attnviz.corpus.indexing import index_corpus, index_texts
from attnviz.corpus.pipeline import profile_corpus, profile_texts
from attnviz.corpus.profile import read_profile
from attnviz.corpus.token_index import read_index
from attnviz.effects.ablation import ablate, ablate_layers, remove_greedily, remove_in_order
from attnviz.effects.attribution_patching import attribute_patches
from attnviz.effects.cell_effects import mask_cells
from attnviz.effects.input_attribution import attribute_inputs
from attnviz.effects.lens import follow_tokens
from attnviz.effects.mean_outputs import mean_outputs
from attnviz.effects.outcome import Similarity, measured
from attnviz.effects.patching import patch
from attnviz.effects.path_patching import PathEnd, patch_paths
from attnviz.errors import ArgumentError, AttnvizError, SelectionError
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Head
from tests.findings import assert_none

ROOT = Path(__file__).parents[2]
PUBLIC = ("attnviz", "attnviz.heads", "attnviz.figures")
"""Whose names are public."""
DOCUMENTED = (
    r"^(?:>>> )?from (attnviz\.(?:effects|corpus|maps|figures|bundle|heads|model)[\w.]*) import (.+)$"
)


def public_functions() -> list[tuple[str, Callable[..., Any]]]:
    """Functions of the stubs, of `attnviz.figures`, and those that README and the docs import, by name."""
    names = [(package, name) for package in PUBLIC for name in importlib.import_module(package).__all__]
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for module, imported in re.findall(DOCUMENTED, page.read_text(encoding="utf-8"), re.MULTILINE):
            names += [(module, name.strip()) for name in imported.split(",")]
    found = {f"{module}.{name}": getattr(importlib.import_module(module), name) for module, name in names}
    takes = {name: call for name, call in found.items() if callable(call) and not isinstance(call, type)}
    return [(name, call) for name, call in takes.items() if call.__name__ != "offers"]  # which takes nothing


def test_every_public_function_checks_its_arguments() -> None:
    functions = public_functions()
    assert len(functions) > 35
    assert_none(
        f"{name} takes anything" for name, call in functions if name != "attnviz.show" and not refuses(call)
    )


def refuses(call: Callable[..., Any]) -> bool:
    try:
        call(Stranger())
    except ArgumentError:
        return True
    except Exception:  # noqa: BLE001  (whatever a function does with what it does not know)
        return False
    return False


class Stranger:
    """Of no type that any function takes."""


@typed
def takes(
    text: str | list[str] = "",
    number: int = 0,
    share: float = 0.0,
    is_on: bool = False,
    path: str | Path | None = None,
    one: "Head | None" = None,
    many: "list[int]" = [],  # noqa: B006
    word: "attnviz.records.Kind | None" = None,
    call: Callable[[float], None] | None = None,
    data: bytes = b"",
    pair: tuple[int, int] = (0, 0),
    heads: "list[Head]" = [],  # noqa: B006
    unknown: "OnlyForTypeCheckers | None" = None,  # noqa: F821
) -> dict[str, Any]:
    """What it was given."""
    return locals()


class OnlyForTypeCheckersToo:
    pass


ACCEPTED = [
    ("text", ("a", "b"), ("a", "b")),
    ("text", pd.Series(["a", "b"], index=[7, 9]), ["a", "b"]),
    ("text", np.array(["a", "b"]), ["a", "b"]),
    ("text", iter(["a", "b"]), ["a", "b"]),
    ("text", (letter for letter in "ab"), ["a", "b"]),
    ("text", {1: "a"}.values(), ["a"]),
    ("number", np.int64(3), 3),
    ("number", np.uint8(3), 3),
    ("share", 1, 1),
    ("share", np.float32(0.5), np.float32(0.5)),
    ("is_on", np.bool_(True), np.bool_(True)),
    ("path", Path("a"), Path("a")),
    ("path", "a", "a"),
    ("one", (3, 1), Head(3, 1)),
    ("one", [np.int64(3), 1], Head(3, 1)),
    ("many", range(3), [0, 1, 2]),
    ("many", torch.tensor([2, 1]), [2, 1]),
    ("many", np.array([2, 1], np.int32), [2, 1]),
    ("word", "cross", "cross"),
    ("data", bytearray(b"a"), b"a"),
    ("pair", [1, 2], (1, 2)),
    ("pair", np.array([1, 2]), (1, 2)),
    ("heads", [(3, 1), Head(0, 0)], [Head(3, 1), Head(0, 0)]),
]


@pytest.mark.parametrize(("name", "given", "taken"), ACCEPTED)
def test_what_is_obviously_meant_is_taken(name: str, given: object, taken: object) -> None:
    by_name = takes(**{name: given})[name]
    assert by_name == taken and type(by_name) is type(taken)


REFUSED = [
    ("text", None, "None"),
    ("text", b"a", "a bytes .* such as data.decode"),
    ("text", 5, "the number 5"),
    ("text", [1, 2], r"a list of int .* model.decode\(ids\)"),
    ("text", ["a", None], "a list of str and NoneType"),
    ("text", [["a"]], "a list of list"),
    ("text", {"input_ids": [1]}, "a dict .* own tokenizer"),
    ("text", UserDict(input_ids=[1]), "a UserDict .* own tokenizer"),
    ("text", {"a", "b"}, "a set"),
    ("text", pd.DataFrame({"a": ["b"]}), "a DataFrame"),
    ("text", torch.tensor([[1]]), r"a Tensor of torch.int64 \[1, 1\] .* model.decode\(ids\)"),
    ("text", str, "the class str"),
    ("text", Path("a"), "Path"),
    ("number", 3.0, "the number 3.0 as number; it takes a whole number. Pass a whole number"),
    ("number", True, "True"),
    ("number", "3", "the text “3”"),
    ("number", None, "None"),
    ("number", np.float64(3), "the number 3.0"),
    ("number", np.bool_(True), "a bool"),
    ("number", torch.tensor(3), "a Tensor"),
    ("share", "0.5", "the text “0.5”"),
    ("share", True, "True"),
    ("is_on", "yes", "takes True or False"),
    ("is_on", 1, "the number 1"),
    ("path", 5, "a text or a path or None"),
    ("path", "", "an empty text"),
    ("one", 3, "a Head"),
    ("one", (3,), "a tuple of int"),
    ("one", (3.0, 1), "a tuple of float and int"),
    ("many", 3, "a list of whole numbers"),
    ("many", "3", "Put it into a list"),
    ("many", [0.5], "a list of float"),
    ("many", [True], "a list of bool"),
    ("many", torch.tensor([0.5]), "a Tensor"),
    ("many", {1: 2}, "a dict"),
    ("word", 3, "one of encoder, decoder, cross"),
    ("word", ["encoder"], "one of encoder, decoder, cross"),
    ("call", "print", "a function"),
    ("data", "a.zip", "the text “a.zip” .*read_bytes"),
    ("pair", 3, "a tuple of 2"),
    ("pair", (1, 2, 3), "a tuple of 2"),
    ("heads", [3], "a list of Head objects"),
    ("unknown", OnlyForTypeCheckersToo(), "an OnlyForTypeCheckers"),
]


@pytest.mark.parametrize(("name", "given", "words"), REFUSED)
def test_what_is_not_is_refused_with_what_to_pass(name: str, given: object, words: str) -> None:
    with pytest.raises(ArgumentError, match=words) as refusal:
        takes(**{name: given})
    message = str(refusal.value)
    assert re.fullmatch(rf"takes\(\) was given .+ as {name}; it takes .+\. .+\.", message, re.DOTALL)
    assert isinstance(refusal.value, TypeError) and isinstance(refusal.value, AttnvizError)


def test_a_word_that_is_none_of_those_offered_is_a_selection() -> None:
    with pytest.raises(SelectionError, match="given “sideways” as word; it takes encoder, decoder, cross"):
        takes(word="sideways")


def test_an_argument_of_another_name_is_python_s_own_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'texts'"):
        takes(texts="a")
    with pytest.raises(TypeError, match=r"missing .*required .*argument"):
        attnviz.verify(object.__new__(Model))


@pytest.fixture
def never(tiny_model, monkeypatch: pytest.MonkeyPatch) -> tuple[Model, Trace]:
    """A model that fails as soon as it runs, and the trace of a text that it has read."""
    model = tiny_model("gpt2")
    trace = model.trace("a b c")

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the model ran")

    for place in (
        "attnviz.model.variants.forward",
        "attnviz.effects.attribution_patching.forward",
        "attnviz.model.loading._load",
        "attnviz.corpus.running.count_texts",
    ):
        monkeypatch.setattr(place, fail)
    return model, trace


class TestBeforeAnythingRuns:
    """Each of these took seconds, or wrote into a folder, before it failed."""

    @pytest.mark.parametrize(
        "outcome",
        [
            None,
            0.5,
            lambda states: states.mean(),
            lambda states: states[:, 0],
            lambda states: states[:, 0, 0].tolist(),
            lambda states: states[:, 0, 0].numpy(),
            lambda states: float(states.sum()),
            lambda _: None,
        ],
    )
    @pytest.mark.usefixtures("types_unchecked")
    def test_an_outcome_that_gives_no_number_for_each_variant(
        self, never: tuple[Model, Trace], outcome: Any
    ) -> None:
        model, trace = never
        experiments: list[Callable[[], object]] = [
            lambda: ablate(model, trace, outcome),
            lambda: ablate_layers(model, trace, outcome),
            lambda: remove_in_order(model, trace, outcome, [Head(0, 0)]),
            lambda: remove_greedily(model, trace, outcome, [Head(0, 0)]),
            lambda: mask_cells(model, trace, outcome, 0, 0),
            lambda: patch(model, trace, trace, outcome, carried="heads"),
            lambda: patch_paths(model, trace, trace, outcome, PathEnd()),
            lambda: attribute_patches(model, trace, trace, outcome, carried="heads"),
        ]
        for experiment in experiments:
            with pytest.raises(
                ArgumentError, match=r"a text or a function\. Pass a text such as|An outcome gave"
            ):
                experiment()

    @pytest.mark.usefixtures("types_unchecked")
    def test_an_outcome_without_a_gradient(self, never: tuple[Model, Trace]) -> None:
        model, trace = never
        with pytest.raises(ArgumentError, match="The gradient of an outcome was asked for"):
            attribute_patches(model, trace, trace, lambda states: states[:, 0, 0].detach(), carried="heads")

    @pytest.mark.usefixtures("never")
    @pytest.mark.parametrize("run", [profile_corpus, lambda *given: index_corpus(*given, layer=0)])
    @pytest.mark.parametrize("out", [None, "", 5, b"out"])
    def test_a_folder_that_is_none(self, run: Callable[..., object], out: Any, tmp_path: Path) -> None:
        text = tmp_path / "a.txt"
        text.write_text("it opened.", encoding="utf-8")
        with pytest.raises(ArgumentError, match="as out; it takes a text or a path"):
            run([str(text)], None, out)
        with pytest.raises(ArgumentError, match="as given; it takes"):
            run(5, None, tmp_path / "out")
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.usefixtures("types_unchecked")
class TestTheUsualMistakes:
    def test_two_arguments_the_wrong_way_round(self, embedded: Model, door_trace) -> None:
        for call in (
            lambda: attnviz.verify(door_trace, embedded),
            lambda: attnviz.predict(door_trace, embedded, 1),
            lambda: attnviz.compare(embedded, door_trace),
            lambda: measured(door_trace, embedded, Similarity(text="a")),
            lambda: profile_texts(["a"], embedded),
            lambda: index_texts(["a"], embedded, 0),
        ):
            with pytest.raises(ArgumentError, match=r"it takes (a Model|an AttentionPattern)"):
                call()

    def test_one_text_where_many_are_asked_for(self, embedded: Model, door_trace) -> None:
        for call in (
            lambda: profile_texts(embedded, "it opened."),
            lambda: index_texts(embedded, "it opened.", 0),
            lambda: mean_outputs(embedded, "it opened."),
            lambda: follow_tokens(embedded, door_trace, 1, "door"),
            lambda: attribute_inputs(embedded, door_trace, Similarity(text="a"), methods="norms"),
        ):
            with pytest.raises(ArgumentError, match="Put it into a list"):
                call()

    def test_a_text_beside_a_list(self, embedded: Model) -> None:
        for first, second in (("a", ["b"]), (["a"], "b")):
            with pytest.raises(ArgumentError, match="one text beside a list of texts"):
                embedded.trace(first, second)

    @pytest.mark.parametrize("layer", [3.0, "3", True, None, [3], np.float64(3), torch.tensor(3), -0.0])
    def test_a_layer_that_is_no_whole_number(self, door_trace, layer: Any) -> None:
        for call in (
            lambda: door_trace.weights(layer, 1),
            lambda: door_trace.pattern(layer, 1),
            lambda: door_trace.head(1, layer),
            lambda: attnviz.project(door_trace, layer, 1),
            lambda: attnviz.figures.draw_heatmap(door_trace, 3, layer),
        ):
            with pytest.raises(ArgumentError, match="a whole number"):
                call() if layer is not None else door_trace.weights(layer, 1)

    def test_numpy_s_whole_numbers_are_whole_numbers(self, door_trace) -> None:
        for number in (np.int8(3), np.int64(3), np.uint16(3)):
            np.testing.assert_array_equal(door_trace.weights(number, number), door_trace.weights(3, 3))
        made = attnviz.project(door_trace, np.int64(3), np.int64(1), method="pca")
        assert (made.layer, type(made.layer)) == (3, int)

    def test_texts_alone_make_a_profile(self, embedded: Model) -> None:
        profile, failures = profile_texts(embedded, ("it opened.", "the door"))
        assert (profile.n_text, failures) == (2, [])

    def test_a_folder_may_be_a_text(self, tmp_path: Path) -> None:
        for read in (read_profile, read_index):
            for folder in (tmp_path, str(tmp_path)):
                with pytest.raises(attnviz.CorpusError, match="was to be read from"):
                    read(folder)
            with pytest.raises(ArgumentError, match="the path of a file or a folder"):
                read("")

    @pytest.mark.parametrize("name", ["", 5, b"bert", ["bert-base-uncased"], torch.float32])
    def test_a_model_without_a_name(self, name: Any) -> None:
        with pytest.raises(ArgumentError, match="as name; it takes a text or a path or None"):
            attnviz.load_model(name)

    def test_words_that_nobody_offers(self, door_trace) -> None:
        for call in (
            lambda: attnviz.load_model(dtype="fp16"),
            lambda: attnviz.figures.draw_heatmap(door_trace, 3, 1, theme="Dark"),
            lambda: attnviz.figures.draw_heatmap(door_trace, 3, 1, show="colours"),
            lambda: door_trace.pattern(3, 1, measure="lengths"),
            lambda: door_trace.pattern(3, 1, "sideways"),
        ):
            with pytest.raises(SelectionError, match="Select one of those"):
                call()
