"""Every family, verified: tiny models with random weights, and the table of the results in docs/families.md.

``python -m benchmarks.families`` writes the table; a test compares its rows with the families that are tested.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from transformers.utils import logging

import attnviz
from attnviz.errors import UnsupportedArchitectureError
from attnviz.records import Check
from tests import tiny, tiny_refused
from tests.own_tokenizers import PACKAGES, save_own

PAGE = Path(__file__).parents[1] / "docs" / "families.md"
START, END = "<!-- families: make families -->", "<!-- end of families -->"
TEXT, SECOND_TEXT = "I was watching the door", "it opened ."
PROTEIN = "MKTAYIAKQRQISFVKSH"


def main() -> None:
    """Writes the table into docs/families.md."""
    logging.disable_progress_bar()
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(START)}.*{re.escape(END)}", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: "\n".join([START, *lines(), END]), text), encoding="utf-8")


def lines() -> Iterator[str]:
    """The section, line by line."""
    families = (tiny.TEXT_FAMILIES | tiny.TEXT_PARTS).items()
    rows = [_supported(family) for name, family in families if name not in PACKAGES]
    refused = {name: _reason(family) for name, family in sorted(tiny_refused.UNSUPPORTED_FAMILIES.items())}
    yield f"{len(rows)} families verified, {len(refused)} refused."
    yield "Each reads its text with a tokenizer of the class that transformers has for the family, from the files that it writes."
    needed = ", ".join(f"{name} ({package})" for name, package in PACKAGES.items())
    yield (
        f"Not counted, for their tokenizers need a Python package that attnviz does not bring: {needed}. m2m-100 is counted "
        "with NLLB's tokenizer; its own needs sentencepiece too."
    )
    yield ""
    yield "| family | compared | closest to its tolerance | difference | tolerance |"
    yield "|---|---|---|---|---|"
    yield from rows
    yield ""
    yield "| refused | because (what is counted, of the tiny model tried) |"
    yield "|---|---|"
    yield from (f"| {name} | {reason} |" for name, reason in refused.items())


def _supported(family: tiny.Family) -> str:
    with tempfile.TemporaryDirectory() as folder:
        tiny.build(family).save_pretrained(folder)
        save_own(family, Path(folder))
        model = attnviz.load_model(folder)
        text = PROTEIN if family.name == "esm" else TEXT
        # BigBird reads no more than it attends to in full
        trace = model.trace(text, SECOND_TEXT if family.is_encoder_decoder else None, cut=True)
        report = attnviz.verify(model, trace)
    if not report.passed:
        raise SystemExit(f"{family.name} does not pass: {[check.name for check in report.failed]}")
    check = max(report.checks, key=_share)
    count = f"{len(report.checks)}" + (", no norms: W_O unknown" if report.not_compared else "")
    return f"| {family.name} | {count} | {check.name} | {check.difference:.1e} | {check.tolerance:.1e} |"


def _reason(family: tiny.Family) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            attnviz.load_model(str(tiny.save(family, Path(folder))))
        except UnsupportedArchitectureError as error:
            return error.reason
    raise SystemExit(f"{family.name} is not refused")


def _share(check: Check) -> float:
    return check.difference / check.tolerance if check.tolerance else check.difference


if __name__ == "__main__":
    main()
