"""What attnviz found in a model, in words: which module computes its attention, where it listens, and what it tested."""

import re
from collections.abc import Iterable
from inspect import getsourcefile, getsourcelines
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from attnviz.arguments import typed
from attnviz.errors import AttnvizError
from attnviz.model.capture import AttentionCall, Recording, forward, recorded_in
from attnviz.model.changes import Changes
from attnviz.model.own_attention import taken_over
from attnviz.model.reference import family_function
from attnviz.model.verification import verify
from attnviz.records import KINDS

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

_TESTED = 3
"""Ordinary tokens that are read for the test."""


@typed
def explain_family(model: "Model") -> str:
    """Which modules of a model were hooked where, with which code they are compared, and what was tested, line by line.

    The test is made now, on a few tokens.

    Raises:
        As `attnviz.Model.probe`.

    >>> import attnviz
    >>> print(attnviz.explain_family(attnviz.load_model("all-MiniLM-L6-v2")).splitlines()[0])
    all-MiniLM-L6-v2: BertModel of transformers.models.bert.modeling_bert, 6 x 12 heads (encoder)
    """
    trace = model.probe(_TESTED)
    network, structure = model.network, model.structure
    kinds = [
        f"{n_layer} x {n_head} heads ({kind})"
        for kind in trace.kinds
        for n_layer, n_head in [trace.shape(kind)]
    ]
    lines = [
        f"{model.name}: {type(network).__name__} of {type(network).__module__}, {', '.join(kinds)}",
        "",
        "attention",
    ]
    for module, names in _attentions(model, trace):
        lines.append(f"  {_listed(names)}: {_attention(module)}")
    lines += ["", "structure"]
    lines.append(f"  layers: {_listed(structure.layers)}" if structure.layers else "  layers: not found")
    for kind in KINDS:
        if kind in trace.kinds:
            maps = [output_map.name for output_map in structure.output_maps.get(kind, ())]
            lines.append(
                f"  W_O ({kind}): {_listed(maps) if maps else 'not found, so there are no norm-based weights'}"
            )
    lines.append(f"  MLPs: {_listed(structure.mlps) if structure.mlps else 'not found'}")
    lines.append(f"  learned positions: {structure.positions.name if structure.positions else 'none'}")
    lines += ["", f"tested on {len(trace.tokens)} tokens"]
    try:
        report = verify(model, trace)
    except AttnvizError as error:
        return "\n".join([*lines, f"  {error}"])
    for check in report.checks:
        told = "passed" if check.passed else "FAILED"
        lines.append(f"  {check.name}: {told}, largest difference {check.difference:.2g}, unit {check.unit}")
    lines += [f"  {name}: not compared. {reason}" for name, reason in report.not_compared.items()]
    return "\n".join(lines)


def _attention(module: nn.Module) -> str:
    """Which code computes the attention of a module, here and in the family."""
    own = taken_over(type(module))
    if own is None:
        return (
            f"{type(module).__name__}, on attnviz's attention, which is registered with transformers; compared with "
            f"{_source(family_function(module))}"
        )
    family: Any = type(module).__bases__[0]
    return (
        f"{family.__name__}, in place of whose forward attnviz takes query, key, value and mask from {_source(own.inputs)}; compared with "
        f"{_source(family.forward)}, whose softmax is observed"
    )


class _Noting(Recording):
    """A recording that notes which modules make the calls."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given, keeps=False)
        self.modules: list[nn.Module] = []

    def add(self, module: nn.Module, call: AttentionCall) -> None:
        self.modules.append(module)
        super().add(module, call)


def _attentions(model: "Model", trace: "Trace") -> list[tuple[nn.Module, list[str]]]:
    """One module of each class that computes attention, and the names of all modules of it, in the order of their calls."""
    noting = _Noting(model.network, Changes())
    with recorded_in(noting), torch.inference_mode():
        forward(model.network, **model.inputs(trace.tokens, trace.target_tokens))
    names = {module: name for name, module in model.network.named_modules()}
    of_class: dict[type, list[nn.Module]] = {}
    for module in noting.modules:
        of_class.setdefault(type(module), []).append(module)
    return [(modules[0], [names[module] for module in modules]) for modules in of_class.values()]


def _listed(names: Iterable[str]) -> str:
    """Names that differ in one number, as one: "encoder.layer.0 … 5.attention.self"."""
    given = list(dict.fromkeys(names))
    if len(given) < 3:
        return ", ".join(given)
    numbers = [list(map(int, re.findall(r"(?<=\.)\d+(?=\.|$)", name))) for name in given]
    ends = str(numbers[-1][0]) if numbers[-1] else ""
    return re.sub(r"(?<=\.)\d+(?=\.|$)", lambda found: f"{found[0]} … {ends}", given[0], count=1)


def _source(function: Any) -> str:
    """Where a function stands: "eager_attention_forward (modeling_bert.py, line 111)"."""
    try:
        file, line = getsourcefile(function), getsourcelines(function)[1]
    except (OSError, TypeError):
        return str(getattr(function, "__qualname__", function))
    return f"{function.__qualname__} ({Path(str(file)).name}, line {line})"
