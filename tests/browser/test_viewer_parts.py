"""The viewer's band, heads, ranking and arcs alone in Chromium: what they draw of matrices written by hand, and what they tell their viewer."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnviz.figures.theme import FONT, THEMES, TOKEN_FONT, ThemeName, weight_scale
from attnviz.heads.flow import above_share, strongest_lines
from attnviz.viewer import joined, style

MODULES = ("svg", "html", "renew", "remember", "measure", "numbers", "cells", "words", "band", "flow", "matrix", "heads", "ranking")
HARNESS = """
{modules}
const calls = (window.calls = []);
const tell = (name) => (told) => calls.push([name, told]);
const entriesOf = (side) => ({{
  labels: side.labels, positions: side.labels.map((_, at) => at), spans: side.labels.map((_, at) => [at, at + 1]), side, isWhole: true,
  special: side.labels.map((_, at) => side.special.includes(at)), resting: side.labels.map((_, at) => side.resting.includes(at)), segment: side.segment,
}});
window.flowLines = flowLines;
window.load = (stage, heads, isMaskable) => {{
  window.stage = stage;
  const [queries, keys] = [entriesOf(stage.queries), entriesOf(stage.keys ?? stage.queries)];
  window.patterns = new Map(heads?.map(([name, weights]) => [name, {{
    measure: "weights", kind: stage.kind, queries, keys, isRenormalised: false, layer: Number(name.split(".")[0]), head: Number(name.split(".")[1]),
    weights: Float64Array.from(weights, (number) => number ?? NaN), hidden: new Float64Array(queries.labels.length),
  }}]));
  if (window.parts) return;
  const given = {{ pick: tell("pick"), preview: tell("preview"), mask: isMaskable ? tell("mask") : undefined, cellsOf: (layer, head) => patterns.get(`${{layer}}.${{head}}`) ?? null }};
  window.parts = {{ band: new Band(given), heads: new Heads(given), ranking: new Ranking(given), flow: new Flow(given) }};
  for (const [name, part] of Object.entries(parts)) document.querySelector(`#${{name}}`).append(part.root);
}};
window.show = (selection, preview, look) => {{
  if (look) window.look = look;
  setColours(document.body, {{ ...window.look.colours, font: window.look.font, "token-font": window.look.tokenFont }});
  const shown = {{ ...selection, ...preview?.place, ...(preview?.query === undefined ? {{}} : {{ query: preview.query }}) }};
  const whole = patterns.get(`${{shown.layer}}.${{shown.head}}`) ?? null;
  const scene = {{ stage, selection, shown, pattern: whole, told: whole, whole, look: window.look, isPreview: Boolean(preview) }};
  const took = {{}};
  for (const [name, part] of Object.entries(parts)) {{
    const start = performance.now();
    part.draw(scene);
    took[name] = performance.now() - start;
  }}
  return took;
}};
"""
PAGE = """<!doctype html><meta charset=utf-8><style>
body {{ margin: 8px; background: var(--background); width: {width}px; --room: 420px }}
#heads, #ranking {{ width: {side}px; max-width: 100% }}
{style}</style><div id=band></div><div id=flow></div><div id=heads></div><div id=ranking></div><script type=module>{script}</script>"""

LABELS = ["[CLS]", "the", "door", "it", "[SEP]"]
WEIGHTS = np.array(
    [
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [0.1, 0.3, 0.4, 0.1, 0.1],
        [0.475, 0.0, 0.5, 0.01, 0.015],
        [0.9, 0.1, 0.0, 0.0, 0.0],
    ]
)


def look_of(theme: ThemeName) -> dict[str, Any]:
    palette = THEMES[theme]
    colours = {field.name: getattr(palette, field.name) for field in fields(palette)}
    return {
        "colours": {name: colour for name, colour in colours.items() if isinstance(colour, str)},
        "scale": weight_scale(palette),
        "font": FONT,
        "tokenFont": TOKEN_FONT,
    }


def side_of(labels: Sequence[str], **more: Any) -> dict[str, Any]:
    special = [at for at, label in enumerate(labels) if label.startswith("[")]
    empty: dict[str, Any] = {"joined": [], "words": None, "cut": {}, "was": {}}
    return {"labels": list(labels), "special": special, "resting": special, "segment": [0] * len(labels)} | empty | more


def stage_of(counts: Sequence[int], queries: dict[str, Any], keys: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A document without its numbers."""
    names = [[f"Layer {layer}, head {head}: a name" for head in range(count)] for layer, count in enumerate(counts)]
    rest = {"kind": "cross" if keys else "encoder", "maskLabel": "[MASK]", "cells": {"measure": "weights", "heads": "all"}}
    return {"text": "a", "counts": list(counts), "queries": queries, "keys": keys, "names": names} | rest | more


def open_parts(
    page: Page,
    stage: dict[str, Any],
    heads: dict[tuple[int, int], np.ndarray],
    *,
    width: int = 1000,
    side: int = 240,
    theme: ThemeName = "light",
    **selected: Any,
) -> None:
    """A page with the four parts, drawn of these heads."""
    script = HARNESS.format(modules=joined(*MODULES))
    css = style("band", "heads", "ranking", "flow")
    page.set_content(PAGE.format(width=width, side=side, style=css, script=script))
    page.wait_for_function("window.load")
    load(page, stage, heads)
    show(page, look=look_of(theme), **selected)


def load(page: Page, stage: dict[str, Any], heads: dict[tuple[int, int], np.ndarray]) -> None:
    sent = [
        [f"{layer}.{head}", [None if np.isnan(number) else round(float(number), 6) for number in weights.ravel()]]
        for (layer, head), weights in heads.items()
    ]
    page.evaluate(f"load({json.dumps(stage)}, {json.dumps(sent)}, true)")


def show(page: Page, *, preview: dict[str, Any] | None = None, look: dict[str, Any] | None = None, **selected: Any) -> dict[str, float]:
    """Draws all parts; milliseconds that each has taken."""
    selection = {"layer": 0, "head": 0, "query": 3, "key": 2, "clip": True} | selected
    took: dict[str, float] = page.evaluate(f"show({json.dumps(selection)}, {json.dumps(preview)}, {json.dumps(look)})")
    return took


def calls(page: Page) -> list[Any]:
    """What has been told since this was asked last."""
    told: list[Any] = page.evaluate("calls.splice(0)")
    return told


def texts(found: Locator) -> list[str]:
    return [text.replace("\xa0", " ") for text in found.all_inner_texts()]


def random_heads(counts: Sequence[int], n_query: int, n_key: int | None = None) -> dict[tuple[int, int], np.ndarray]:
    random = np.random.default_rng(7)
    size = (n_query, n_key or n_query)
    return {
        (layer, head): random.dirichlet(np.full(size[1], 0.15), size=size[0])
        for layer, count in enumerate(counts)
        for head in range(count)
    }
