"""The door of the public functions: arguments of another type than the signature names are refused before anything runs.

Where a notebook calls what takes long, a bar tells how far it is. `typed` reads a function's annotations; `_rule` has what fits each kind of annotation, `_INSTEAD` and `_INSTEAD_OF` what
to pass instead. What is obviously meant is accepted: any ordered collection, a Series or an iterator for a list, a
numpy integer for an int, a tuple for a Head, a text for a path.
"""

import builtins
import operator
import os
import re
import sys
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import cache, wraps
from inspect import signature, unwrap
from io import IOBase
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin

from attnviz.errors import ArgumentError, SelectionError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_NO: Any = object()
"""What a rule gives for a value that does not fit."""

_INSTEAD = {
    "Model": "attnviz.load_model() gives a Model",
    "Trace": "model.trace(text) gives a Trace",
    "AttentionPattern": "trace.pattern(layer, head) gives an AttentionPattern",
    "Projection": "attnviz.project(trace, layer, head) gives a Projection",
    "Comparison": "attnviz.compare(first, second) gives a Comparison",
    "Bundle": "attnviz.read_bundle(data) gives a Bundle",
    "Module": "AutoModel.from_pretrained gives such a model; attnviz.show(attention, tokens) takes arrays from elsewhere",
    "PreTrainedTokenizerBase": "AutoTokenizer.from_pretrained gives the model's",
    "Check": "attnviz.verify(model, trace).check(name) gives a Check",
    "VerificationReport": "attnviz.verify(model, trace) gives a VerificationReport",
    "Tokens": "trace.tokens are Tokens",
    "Axis": "attnviz.records.Axis.of(trace.tokens) gives an Axis",
    "TokenAnswer": "Pass a text such as “answer:last:door” or “state:7”",
    "str": "Pass a text, in quotation marks",
    "bytes": "Path(name).read_bytes() gives the bytes of a file",
    "bool": "Pass one of the two",
    "int": "Pass a whole number, such as 3",
    "float": "Pass a number, such as 0.5",
    "Path": "Pass the path of a file or a folder, such as “profiles/mine”",
    "word": "Pass one of these words",
    "function": "Pass a function, without calling it",
    "outcome": "Pass a text such as “answer:last:door” or “state:7”",
    "array": "numpy.asarray(values) gives an array",
}
"""What to pass where this is asked for."""

_INSTEAD_OF: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (
        lambda value: isinstance(value, Mapping),
        "Pass the text itself: the model reads it with its own tokenizer",
    ),
    (lambda value: isinstance(value, bytes | bytearray), "Pass a text, such as data.decode()"),
    (
        lambda value: hasattr(value, "state_dict"),
        "attnviz.wrap(model, tokenizer) takes a model that is in memory",
    ),
    (
        lambda value: (
            (hasattr(value, "dtype") and value.ndim > 1) or (is_list(value) and any(map(is_number, value)))
        ),
        "Pass the text itself; model.decode(ids) gives the text of token ids",
    ),
)
"""What to pass where a text is asked for, by what was given."""


_DELAY = 1.0
"""Seconds after which a bar appears: what is done sooner shows none."""


def typed(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, which refuses arguments that do not fit its annotations, and tells a notebook how far it is.

    Raises:
        ArgumentError: when it is called with an argument of another type.
        SelectionError: with a word that is none of a ``Literal``.
    """
    rules: dict[str, _Rule] = {}
    parameters = signature(function).parameters
    tells_progress = "progress" in parameters and parameters["progress"].default is None

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if not rules:
            rules.update(_rules(function))
        fitting: list[Any] = [
            rules[name].check(value, name.removeprefix("*"), function)
            for name, value in zip(_names(rules, len(args)), args, strict=False)
        ]
        named = {
            name: rules[name].check(value, name, function) if name in rules else value
            for name, value in kwargs.items()
        }
        given = (*fitting, *args[len(fitting) :])
        if tells_progress and named.get("progress") is None and is_notebook():
            with _bar(function.__name__) as tell:
                return function(*given, **named | {"progress": tell})
        return function(*given, **named)  # type: ignore[arg-type]

    return call


def is_notebook() -> bool:
    """Whether a kernel of Jupyter runs this code."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextmanager
def _bar(what: str) -> Iterator[Callable[..., None]]:
    """A bar, of widgets where there are any, and the function that tells it the share that is done, 0 to 1."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    with tqdm(
        total=1.0,
        desc=what,
        delay=_DELAY,
        leave=False,
        bar_format="{l_bar}{bar}| {elapsed}, {remaining} left",
    ) as shown:

        def tell(share: float, *_: Any) -> None:
            shown.update(share - shown.n)

        yield tell


class _Rule(NamedTuple):
    """What fits an annotation."""

    fit: Callable[[Any], Any]
    """The value as the function takes it, or `_NO`."""
    words: str
    """What is asked for, as in "a text"."""
    plural: str
    options: tuple[str, ...] = ()
    """The words of a ``Literal``."""
    instead: str = ""
    """What to pass."""

    def check(self, value: Any, name: str, function: Callable[..., Any]) -> Any:
        fitting = self.fit(value)
        if fitting is not _NO:
            return fitting
        called = f"{function.__qualname__}()"
        words = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
        for word in words:
            if self.options and isinstance(word, str) and word not in self.options:
                raise SelectionError(
                    f"{called} was given “{_short(word)}” as {name}; it takes {', '.join(self.options)}. Select one of those."
                )
        raise ArgumentError(
            f"{called} was given {described(value)} as {name}; it takes {self.words}. {self._advice(value)}."
        )

    def _advice(self, value: Any) -> str:
        if "text" in self.words:
            for is_given, instead in _INSTEAD_OF:
                if is_given(value):
                    return instead
        if isinstance(value, str) and "a list of" in self.words:
            return "Put it into a list"
        return self.instead or f"Pass {self.words.split(' or ')[0]}"


def _names(rules: Mapping[str, _Rule], count: int) -> list[str]:
    """The parameters of so many positional arguments: those of ``*args`` are of one."""
    names = list(rules)
    starred = next((number for number, name in enumerate(names) if name.startswith("*")), None)
    return names if starred is None else [*names[:starred], *[names[starred]] * (count - starred)]


def _rules(function: Callable[..., Any]) -> dict[str, _Rule]:
    """The rule of each parameter, positional ones first; a parameter without an annotation, such as self, takes anything."""
    known = _Names(unwrap(function).__globals__)
    return {
        "*" * (each.kind is each.VAR_POSITIONAL) + each.name: _ANYTHING
        if each.annotation is each.empty
        else _rule(each.annotation, known)
        for each in signature(function).parameters.values()
        if each.kind is not each.VAR_KEYWORD
    }


class _ByName(type):
    """The class of a name that is imported for type checkers alone: whatever has a class of that name is one of it."""

    def __instancecheck__(cls, value: object) -> bool:
        return any(base.__name__ == cls.__name__ for base in type(value).__mro__)


class _Names(dict[str, Any]):
    """What the names in an annotation stand for; for a module that nothing has imported yet, so that no value can be of its types, see `_ByName`."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        module = sys.modules.get(_imported_for_types(self["__file__"]).get(name, ""))
        return getattr(module, name, None) or _ByName(name, (), {})


@cache
def _imported_for_types(file: str) -> dict[str, str]:
    """By name, the module of what a file imports for type checkers alone; it may be no class, such as a Literal."""
    source = Path(file).read_text(
        encoding="utf-8"
    )  # not by ast, which several threads of Python 3.11 cannot use at once
    block = "".join(re.findall(r"^if TYPE_CHECKING:\n((?:(?: .*)?\n)+)", source, flags=re.MULTILINE))
    return {
        name: module
        for module, names in re.findall(r"from (\S+) import (\([^)]*\)|.*)", block)
        for name in re.findall(r"\w+", re.sub(r"#.*", "", names))
    }


def _rule(kind: Any, known: _Names) -> _Rule:
    """The rule of an annotation: the one list of what is accepted for what."""
    if isinstance(kind, typing.ForwardRef):
        kind = kind.__forward_arg__
    if isinstance(kind, str):
        kind = eval(kind, {}, known)  # an annotation in attnviz's own source
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if origin in (Union, UnionType):
        return _any_of([_rule(part, known) for part in parts], has_path=Path in parts)
    if origin is Literal:
        words = tuple(map(str, parts))
        one_of = _rule_of(
            lambda value: _is_among(value, parts), f"one of {', '.join(words)}", "words", "word"
        )
        return one_of._replace(options=words)
    if kind is Callable or origin is Callable:
        is_outcome = bool(parts) and getattr(parts[-1], "__name__", "") == "Tensor"
        return _FUNCTION._replace(instead=_INSTEAD["outcome"]) if is_outcome else _FUNCTION
    if origin is tuple and not (len(parts) == 2 and parts[1] is Ellipsis):
        return _tuple_of([_rule(part, known) for part in parts])
    if origin in (list, tuple, Sequence, Iterable, Collection):
        return _list_of(_rule(parts[0], known), origin)
    if origin in (Mapping, dict):
        return _mapping_of(*(_rule(part, known) for part in parts))
    if hasattr(kind, "array_type") and hasattr(kind, "dtypes"):
        return _array_of(kind)
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _named_tuple(kind, known)
    if origin is type and isinstance(parts[0], type):
        base = parts[0]
        return _rule_of(
            lambda value: isinstance(value, type) and issubclass(value, base),
            f"a class of {base.__name__}",
            "classes",
        )
    return _instance_of(kind) if isinstance(kind, type) else _ANYTHING


def _is_among(value: Any, parts: tuple[Any, ...]) -> bool:
    return isinstance(value, str | int) and value in parts


def _instance_of(kind: type) -> _Rule:
    name = kind.__name__
    return _rule_of(lambda value: isinstance(value, kind), _article(name), f"{name} objects", name)


def is_number(value: object) -> bool:
    """Whether a value is a number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_list(value: object) -> bool:
    """Whether a value is a collection in some order, of one axis, such as a list, a tuple, an array or a Series."""
    if isinstance(value, str | bytes | bytearray | Mapping | Set | IOBase | type):
        return False
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) == 1


def _whole(value: Any) -> Any:
    return operator.index(value) if isinstance(value, Integral) and not isinstance(value, bool) else _NO


def _is_truth(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # numpy's, by version


def _bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else _NO


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str | os.PathLike) and str(value) else _NO


def _rule_of(fit: Callable[[Any], bool], words: str, plural: str, instead: str = "") -> _Rule:
    return _Rule(lambda value: value if fit(value) else _NO, words, plural, instead=_INSTEAD.get(instead, ""))


_ANYTHING = _rule_of(lambda _: True, "anything", "anything")
_NOTHING = _rule_of(lambda value: value is None, "None", "None")
_FUNCTION = _rule_of(callable, "a function", "functions", "function")
_SIMPLE: dict[Any, _Rule] = {
    Any: _ANYTHING,
    object: _ANYTHING,
    None: _NOTHING,
    NoneType: _NOTHING,
    str: _rule_of(lambda value: isinstance(value, str), "a text", "texts", "str"),
    bytes: _Rule(_bytes, "bytes", "bytes", instead=_INSTEAD["bytes"]),
    bool: _rule_of(_is_truth, "True or False", "truth values", "bool"),
    int: _Rule(_whole, "a whole number", "whole numbers", instead=_INSTEAD["int"]),
    float: _rule_of(is_number, "a number", "numbers", "float"),
    Path: _Rule(_path, "a path", "paths", instead=_INSTEAD["Path"]),
}
"""The rules of what is no collection."""


def _any_of(rules: Sequence[_Rule], *, has_path: bool) -> _Rule:
    def fit(value: Any) -> Any:
        if has_path and isinstance(value, str) and not value:
            return _NO  # "" would be the current folder
        return next((fitting for rule in rules if (fitting := rule.fit(value)) is not _NO), _NO)

    options = tuple(option for rule in rules for option in rule.options)
    words = [rule.words for rule in rules]
    plural = " or ".join(rule.plural for rule in rules)
    instead = _INSTEAD["Path"] if has_path else next((rule.instead for rule in rules if rule.instead), "")
    return _Rule(fit, " or ".join(dict.fromkeys(words)), plural, options, instead)


def _list_of(rule: _Rule, origin: Any) -> _Rule:
    def fit(value: Any) -> Any:
        if origin is Iterable and isinstance(value, Iterator):
            return value  # read as it goes, never whole
        if not is_list(value) and not (origin in (Collection, Iterable) and isinstance(value, Set | Mapping)):
            return _NO
        entries = value.tolist() if hasattr(value, "tolist") else list(value)
        fitting = [rule.fit(entry) for entry in entries]
        if any(entry is _NO for entry in fitting):
            return _NO
        return tuple(fitting) if isinstance(value, tuple) else fitting

    return _Rule(fit, f"a list of {rule.plural}", "lists", rule.options)


def _tuple_of(rules: Sequence[_Rule]) -> _Rule:
    def fit(value: Any) -> Any:
        entries = list(value) if is_list(value) else []
        if len(entries) != len(rules):
            return _NO
        fitting = tuple(rule.fit(entry) for rule, entry in zip(rules, entries, strict=True))
        named = type(value) if isinstance(value, tuple) and hasattr(value, "_fields") else tuple
        return (
            _NO
            if any(entry is _NO for entry in fitting)
            else named(*fitting)
            if named is not tuple
            else fitting
        )

    words = ", ".join(rule.words for rule in rules)
    return _Rule(fit, f"a tuple of {len(rules)}: {words}", "tuples")


def _named_tuple(kind: Any, known: _Names) -> _Rule:
    parts = _tuple_of([_rule(part, known) for part in typing.get_type_hints(kind).values()])

    def fit(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        fitting = parts.fit(value) if not hasattr(value, "_fields") else _NO
        return _NO if fitting is _NO else kind(*fitting)

    return _Rule(fit, _instance_of(kind).words, _instance_of(kind).plural)


def _mapping_of(key: _Rule, entry: _Rule) -> _Rule:
    def fit(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return _NO
        fitting = {key.fit(name): entry.fit(held) for name, held in value.items()}
        return _NO if _NO in fitting or any(held is _NO for held in fitting.values()) else fitting

    return _Rule(fit, f"a mapping of {key.plural} to {entry.plural}", "mappings")


def _array_of(kind: Any) -> _Rule:
    """Arrays of jaxtyping: the library's class, a kind of number, and how many axes; sizes are the function's matter."""
    n_axis = len(kind.dims) if kind.index_variadic is None else None

    def fit(value: Any) -> Any:
        if not isinstance(value, kind.array_type):
            return _NO
        dtype = str(value.dtype).removeprefix("torch.")
        return value if dtype in kind.dtypes and n_axis in (None, value.ndim) else _NO

    axes = f" [{' '.join(kind.dim_str.split())}]" if kind.dim_str else ""
    library = "array" if kind.array_type.__module__ == "numpy" else "Tensor"
    number = {"Bool": "True and False", "Int": "whole numbers", "UInt8": "whole numbers"}.get(
        kind.__name__.partition("[")[0], "numbers"
    )
    article = "an" if library == "array" else "a"
    return _Rule(
        fit,
        f"{article} {library} of {number}{axes}",
        f"{library}s",
        instead=_INSTEAD["array"] * (library == "array"),
    )


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def described(value: Any) -> str:
    """What was given, in a few words."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return f"the text “{_short(value)}”" if value else "an empty text"
    if isinstance(value, Real):
        return f"the number {value}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{_article(name)} of {value.dtype} {list(value.shape)}"
    if isinstance(value, list | tuple) and value and not hasattr(value, "_fields"):
        names = dict.fromkeys(type(entry).__name__ for entry in value)
        return f"{_article(name)} of {' and '.join(list(names)[:3])}"
    return _article(name)


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"
