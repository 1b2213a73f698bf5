"""What components are made of: nothing is asked again and again, kept fields are read in one place, nothing is there twice.

Each check is itself checked: on a wrong copy of what it guards it has to fail.
"""

import re
from itertools import combinations
from pathlib import Path

import pytest

COMPONENTS = Path(__file__).parents[2] / "ui" / "components"
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(COMPONENTS.glob("*/*.js"))}
STYLES = {path.name: path.read_text(encoding="utf-8") for path in sorted(COMPONENTS.glob("*/*.css"))}
INSIDES = "chart_insides.js"
"""The one script that reads what Plotly keeps to itself."""
RUN = 6
"""Lines that no two components share."""

# Plotly and React begin names of what is not for others with a line below; l2p has none, and is documented nowhere.
PRIVATE = re.compile(r"(?<![\w.-])_\w+|(?<=\.)_\w+|\bl2p\b")
POLLING = re.compile(r"\bsetInterval\b")
WATCHER = re.compile(r"new (?:Mutation|Resize|Intersection)Observer\(")


def own_calls(script: str) -> list[str]:
    """Functions that ask for a later call of themselves."""
    found = []
    bodies = re.split(r"^\s*(?:const|let|function) (\w+)", script, flags=re.MULTILINE)
    for name, body in zip(bodies[1::2], bodies[2::2], strict=True):
        if re.search(rf"(?:requestAnimationFrame|setTimeout)\(\s*{name}\b", body):
            found.append(name)
    return found


def runs(text: str) -> set[tuple[str, ...]]:
    """Every so many lines in a row, as they read without blank ones and without their place on the line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return {tuple(lines[at : at + RUN]) for at in range(len(lines) - RUN + 1)}


def joined(name: str) -> str:
    """Script and style of a component, without what it shares."""
    return SCRIPTS[f"{name}.js"] + STYLES[f"{name}.css"]


NAMES = [path.parent.name for path in sorted(COMPONENTS.glob("*/__init__.py"))]


def test_every_component_is_looked_at():
    assert {"head_grid", "map_grid", "point_clicks", "token_flow"} <= set(NAMES)
    assert {f"{name}.js" for name in NAMES} < SCRIPTS.keys()


def rests_on(script: str) -> set[str]:
    """Shared files whose functions a script calls, and those that these rest on."""
    own = {
        path.stem
        for path in (COMPONENTS / "shared").glob("*.js")
        if any(
            re.search(rf"(?<![\w.]){one}\(", script)
            for one in re.findall(r"^function (\w+)", SCRIPTS[path.name], flags=re.MULTILINE)
        )
        and SCRIPTS[path.name] != script
    }
    return own.union(*(rests_on(SCRIPTS[f"{one}.js"]) for one in own))


@pytest.mark.parametrize("name", NAMES)
def test_a_component_names_what_it_rests_on(name):
    """In Python, and in the first lines of its script for those who read that."""
    command = re.search(
        r"register\(([^)]*)\)", (COMPONENTS / name / "__init__.py").read_text(encoding="utf-8")
    )
    said = re.search(r"Rests on ([^.]*)\.", SCRIPTS[f"{name}.js"])
    assert command
    assert re.findall(r'"(\w+)"', command[1]) == [
        name,
        *(re.findall(r"(?!and)\b\w+", said[1]) if said else []),
    ]
    assert set(re.findall(r'"(\w+)"', command[1])) == {name} | rests_on(SCRIPTS[f"{name}.js"])


class TestPolling:
    @pytest.mark.parametrize("name", SCRIPTS)
    def test_is_not_there(self, name):
        assert not POLLING.search(SCRIPTS[name])
        assert own_calls(SCRIPTS[name]) == []

    @pytest.mark.parametrize("name", SCRIPTS)
    def test_has_watchers_in_its_place_which_end(self, name):
        assert len(WATCHER.findall(SCRIPTS[name])) <= SCRIPTS[name].count(".disconnect()")

    @pytest.mark.parametrize(
        "script",
        [
            "const look = () => {\n  requestAnimationFrame(look);\n};\n",
            "function look() {\n  setTimeout(look, 50);\n}\n",
        ],
    )
    def test_would_be_found(self, script):
        assert own_calls(script) == ["look"]
        assert own_calls(script.replace("(look", "(other")) == []


class TestKeptFields:
    @pytest.mark.parametrize("name", [name for name in SCRIPTS if name != INSIDES])
    def test_are_read_in_one_place_only(self, name):
        assert PRIVATE.findall(SCRIPTS[name]) == []

    def test_are_all_needed_there(self):
        """A field that nothing needs any more goes; a function that nobody calls does, too."""
        functions = re.findall(r"^function (\w+)", SCRIPTS[INSIDES], flags=re.MULTILINE)
        others = "".join(script for name, script in SCRIPTS.items() if name != INSIDES)
        assert functions and all(f"{one}(" in others for one in functions)

    @pytest.mark.parametrize(
        "script",
        [
            "chart._fullLayout.xaxis",
            "chart?._fullData",
            "const { _fullLayout } = chart;",
            "label.parentNode.__data__",
            "xaxis.l2p(1)",
        ],
    )
    def test_would_be_found(self, script):
        assert PRIVATE.search(script)

    @pytest.mark.parametrize("script", ["(_, at) => at", 'querySelector(".head_grid")', "60_000"])
    def test_are_not_mixed_up_with_others(self, script):
        assert not PRIVATE.search(script)


class TestCopies:
    @pytest.mark.parametrize(("one", "other"), list(combinations(NAMES, 2)))
    def test_are_not_there(self, one, other):
        assert runs(joined(one)) & runs(joined(other)) == set()

    @pytest.mark.parametrize("ending", ["js", "css"])
    @pytest.mark.parametrize("name", ["head_grid", "map_grid"])
    def test_of_the_shared_grid_are_not_there(self, name, ending):
        shared = (COMPONENTS / "shared" / f"grid.{ending}").read_text(encoding="utf-8")
        assert runs(joined(name)) & runs(shared) == set()

    def test_would_be_found(self):
        copy = "\n".join(f"  line {number};\n" for number in range(RUN))
        assert runs(f"a\n{copy}\nb") & runs(f"c\n{copy}\nd")
        assert not runs(f"a\n{copy}\nb") & runs(copy.replace("line 2", "line 7"))
