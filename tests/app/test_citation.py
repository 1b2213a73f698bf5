"""The citation that Export copies: what was shown, as an entry that BibTeX can read whatever the text holds."""

import re
from datetime import date
from pathlib import Path

import attnviz
from tests.app.screen import DOOR, component, facts, open_page
from ui.shell.export.citation import escaped

ROOT = Path(__file__).parents[2]


def citation(**params: object) -> str:
    data = component(open_page(**params), "save_picture")
    return str(data["citation"])


def test_says_version_model_revision_text_and_head(door_trace):
    entry = citation(text=DOOR, layer=3, head=1)
    assert entry.startswith("@software{attnviz,\n")
    assert f"  version = {{{attnviz.__version__}}},\n" in entry
    assert f"  year = {{{date.today().year}}},\n" in entry
    revision = escaped(door_trace.provenance.revision)
    [note] = [line for line in entry.splitlines() if line.startswith("  note = {")]
    assert "all-MiniLM-L6-v2" in note and f" {revision};" in note
    assert f"``{DOOR}''" in note
    assert facts(note).heads == ((3, 1),)


def test_any_text_leaves_the_entry_whole():
    entry = citation(text="50% of {it} costs $5 & a_b #1 ~x^2 \\input{evil} and more words\nhere")
    assert entry.count("{") == entry.count("}")
    assert r"50\% of \textbraceleft{}it\textbraceright{} costs \$5 \& a\_b \#1…" in entry
    assert re.findall(r"(?<!\\)[%$&#_]", entry) == []
    assert "evil" not in entry  # after eight words


def test_a_backslash_starts_no_command():
    assert escaped("\\input{x}\n~^") == (
        r"\textbackslash{}input\textbraceleft{}x\textbraceright{} \textasciitilde{}\textasciicircum{}"
    )


def test_the_citation_of_the_repository_has_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {attnviz.__version__}\n" in text
    assert '- name: "The attnviz developers"' in text
