"""What components are made of: no polling, Plotly's private fields read in one place, no copies.

Each check is itself checked: it has to fail on a wrong copy of what it guards.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from importlib import import_module
from itertools import combinations
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from attnviz import viewer
from tests.findings import assert_none
from ui.components import _scripts, script_of

ROOT = Path(__file__).parents[2]
COMPONENTS = ROOT / "ui" / "components"
FILES = {path.name: path for ending in ("js", "css") for path in sorted(COMPONENTS.glob(f"*/*.{ending}"))}
SCRIPTS = {name: path.read_text(encoding="utf-8") for name, path in FILES.items() if path.suffix == ".js"}
STYLES = {name: path.read_text(encoding="utf-8") for name, path in FILES.items() if path.suffix == ".css"}
INSIDES = "chart_insides.js"
"""The one script that reads what Plotly keeps to itself."""
OF_VIEWER = ("svg", "html", "renew", "rove", "remember", "measure", "numbers")
"""The viewer's modules that components use too."""
N_LINE = 6
"""Lines in a row that no two components share."""
NAMES = [path.parent.name for path in sorted(COMPONENTS.glob("*/__init__.py"))]

# Plotly and React begin private names with an underscore; l2p has none, and is documented nowhere.
PRIVATE = re.compile(r"(?<![\w.-])_\w+|(?<=\.)_\w+|\bl2p\b")
INTERVAL = re.compile(r"\bsetInterval\b")
OBSERVER = re.compile(r"new (?:Mutation|Resize|Intersection)Observer\(")
DECLARED = re.compile(r"^(?:async function|function|class|const|let) (\w+)", re.MULTILINE)
FUNCTION = re.compile(r"^(?:async )?function (\w+)", re.MULTILINE)


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def repeated(script: str) -> Iterator[str]:
    """Timers that repeat, and functions that ask for a later call of themselves."""
    for interval in INTERVAL.finditer(script):
        yield f"{line_at(script, interval.start())}: setInterval polls"
    declared = re.compile(r"^[^\S\n]*(?:const|let|function) (\w+)", re.MULTILINE)
    for name in declared.finditer(script):
        following = declared.search(script, name.end())
        body = script[name.end() : following.start() if following else None]
        if re.search(rf"(?:requestAnimationFrame|setTimeout)\(\s*{name[1]}\b", body):
            yield f"{line_at(script, name.start(1))}: {name[1]} asks for a later call of itself"


def endless_observers(script: str) -> Iterator[str]:
    """Observers, if there are more of them than calls that end one."""
    observers = list(OBSERVER.finditer(script))
    n_end = script.count(".disconnect()")
    for observer in observers[n_end:]:
        yield f"{line_at(script, observer.start())}: of {len(observers)} observers only {n_end} are disconnected"


def private_fields(script: str) -> Iterator[str]:
    """Fields that a library keeps to itself."""
    for field in PRIVATE.finditer(script):
        yield f"{line_at(script, field.start())}: {field[0]} is private; read it in {INSIDES}"


def not_called(script: str, others: str) -> Iterator[str]:
    """Functions of a script that no other script calls."""
    for function in FUNCTION.finditer(script):
        if f"{function[1]}(" not in others:
            yield f"{line_at(script, function.start())}: nothing calls {function[1]}"


def findings(check: Callable[[str], Iterator[str]], scripts: Mapping[str, str]) -> list[str]:
    """ "file:line: what is wrong" of all scripts."""
    return [
        f"{FILES[name].relative_to(ROOT)}:{finding}"
        for name, script in scripts.items()
        for finding in check(script)
    ]


def is_shared(name: str) -> bool:
    return FILES[name].parent.name == "shared"


def rests_on(script: str, shared: Mapping[str, str]) -> set[str]:
    """Names of the shared scripts whose functions a script calls, and of those that these rest on."""
    direct = {
        name
        for name, source in shared.items()
        if source != script
        and any(re.search(rf"(?<![\w.]){function}\(", script) for function in FUNCTION.findall(source))
    }
    return direct.union(*(rests_on(shared[name], shared) for name in direct))


def wrong_dependencies(name: str, package: str, script: str, shared: Mapping[str, str]) -> Iterator[str]:
    """Where Python, the first lines of the script and its calls differ in what a component rests on."""
    command = re.search(r"register\(([^)]*)\)", package)
    if command is None:
        yield "registers nothing"
        return
    registered = re.findall(r'"(\w+)"', command[1])
    comment = re.search(r"Rests on ([^.]*)\.", script)
    named = re.findall(r"(?!and)\b\w+", comment[1]) if comment else []
    called = rests_on(script, shared)
    if registered != [name, *named]:
        yield f"registers {registered}; the comment of its script names {named}"
    if set(registered) != {name} | called:
        yield f"registers {registered}; its script calls functions of {sorted(called)}"


def declared_twice(script: str) -> list[str]:
    """Names that a component's files declare more than once between them: a browser refuses such a script."""
    declared = Counter(DECLARED.findall(script))
    return [name for name, n in declared.items() if n > 1]


def copies(sources: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Lines in a row that two components share, by component, file and text: one finding for two files.

    Lines are compared without blank ones and without their indentation.
    """
    places: dict[tuple[str, ...], list[tuple[str, str, int]]] = defaultdict(list)
    for component, texts in sources.items():
        for file, text in texts.items():
            lines = [(at, line.strip()) for at, line in enumerate(text.splitlines(), 1) if line.strip()]
            for start in range(len(lines) - N_LINE + 1):
                run = tuple(line for _, line in lines[start : start + N_LINE])
                places[run].append((component, file, lines[start][0]))
    shared: dict[tuple[str, str], str] = {}
    for run, found_at in places.items():
        for (first, file, line), (second, other_file, other_line) in combinations(found_at, 2):
            if first != second:
                shared.setdefault(
                    (file, other_file),
                    f"{file}:{line} and {other_file}:{other_line} share {N_LINE} lines from {run[0]!r}",
                )
    return list(shared.values())


def test_every_component_is_looked_at():
    assert {"head_grid", "map_grid", "plotly_figure", "token_flow"} <= set(NAMES)
    assert {f"{name}.js" for name in NAMES} < SCRIPTS.keys()
    assert len(SCRIPTS) + len(STYLES) == len(list(COMPONENTS.glob("*/*.js"))) + len(
        list(COMPONENTS.glob("*/*.css"))
    )  # no name comes twice


def test_a_component_names_what_it_rests_on():
    """In Python, and in the first lines of its script for those who read that."""
    shared = {name.removesuffix(".js"): script for name, script in SCRIPTS.items() if is_shared(name)}
    shared |= {name: viewer.joined(name) for name in OF_VIEWER}
    packages = {name: COMPONENTS / name / "__init__.py" for name in NAMES}
    assert_none(
        f"{package.relative_to(ROOT)}: {finding}"
        for name, package in packages.items()
        for finding in wrong_dependencies(
            name,
            package.read_text(encoding="utf-8"),
            "".join(script for file, script in SCRIPTS.items() if FILES[file].parent.name == name),
            shared,
        )
    )


def test_no_component_declares_a_name_twice():
    for name in NAMES:  # each registers its script when it is imported
        import_module(f"ui.components.{name}")
    assert {name for name, _ in _scripts} == set(NAMES)
    assert_none(
        f"{name}: {again}" for (name, _), script in _scripts.items() for again in declared_twice(script)
    )
    assert declared_twice("const A = 1;\nfunction draw() {}\n  const A = 2;\nlet draw;") == ["draw"]


def test_no_component_polls():
    assert_none(findings(repeated, SCRIPTS))


def test_observers_end():
    assert_none(findings(endless_observers, SCRIPTS))


def test_private_fields_are_read_in_one_place_only():
    assert_none(findings(private_fields, {name: SCRIPTS[name] for name in SCRIPTS if name != INSIDES}))


def test_private_fields_are_all_needed():
    """A field that nothing needs any more goes, and so does a function that no script calls."""
    others = "".join(script for name, script in SCRIPTS.items() if name != INSIDES)
    assert_none(findings(lambda script: not_called(script, others), {INSIDES: SCRIPTS[INSIDES]}))
    assert FUNCTION.search(SCRIPTS[INSIDES])


def test_no_component_is_a_copy():
    """Neither of another one nor of what they share."""
    sources: dict[str, dict[str, str]] = defaultdict(dict)
    for path in FILES.values():
        sources[path.parent.name][path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    assert_none(copies(sources))


def test_checks_can_fail():
    """Check, script, and the finding that it has to give; None where the script is right."""
    cases: list[tuple[Callable[[str], Iterator[str]], str, str | None]] = [
        (repeated, "setInterval(draw, 50);", "1: setInterval polls"),
        (repeated, "\n\nwindow.setInterval(draw)", "3: setInterval polls"),
        (
            repeated,
            "const look = () => {\n  requestAnimationFrame(look);\n};\n",
            "1: look asks for a later call of itself",
        ),
        (
            repeated,
            "let a = 1;\nfunction look() {\n  setTimeout(look, 50);\n}\n",
            "2: look asks for a later call of itself",
        ),
        (repeated, "function look() {\n  setTimeout(other, 50);\n}\n", None),
        (repeated, "const look = () => {\n  requestAnimationFrame(other);\n};\n", None),
        (
            endless_observers,
            "new ResizeObserver(a);\nnew MutationObserver(b);\nc.disconnect()",
            "2: of 2 observers only 1 are disconnected",
        ),
        (endless_observers, "new IntersectionObserver(a)", "1: of 1 observers only 0 are disconnected"),
        (endless_observers, "new ResizeObserver(a);\nc.disconnect()", None),
        *[
            (private_fields, script, f"1: {field} is private; read it in {INSIDES}")
            for script, field in [
                ("chart._fullLayout.xaxis", "_fullLayout"),
                ("chart?._fullData", "_fullData"),
                ("const { _fullLayout } = chart;", "_fullLayout"),
                ("label.parentNode.__data__", "__data__"),
                ("xaxis.l2p(1)", "l2p"),
            ]
        ],
        *[(private_fields, script, None) for script in ("(_, at) => at", '".head_grid"', "60_000")],
        (
            lambda script: not_called(script, "used();"),
            "function used() {}\nfunction unused() {}",
            "2: nothing calls unused",
        ),
    ]
    assert_none(
        f"{script!r}: {list(check(script))} instead of {expected!r}"
        for check, script, expected in cases
        if list(check(script)) != ([] if expected is None else [expected])
    )


def test_check_of_dependencies_can_fail():
    shared = {"svg": "function draw() {\n  text();\n}", "html": "function text() {}", "grid": ""}
    right = ("grids", 'register("grids", "svg", "html")', "// Rests on svg and html.\ndraw();", shared)
    wrong = {
        "nothing is registered": (right[0], "", *right[2:]),
        "the comment names less": (*right[:2], "// Rests on svg.\ndraw();", shared),
        "what is called indirectly is missing": (
            right[0],
            'register("grids", "svg")',
            "// Rests on svg.\ndraw();",
            shared,
        ),
        "nothing of it is called": (*right[:2], "// Rests on svg and html.\nother.draw();", shared),
        "another name": ("another", *right[1:]),
    }
    assert list(wrong_dependencies(*right)) == []
    assert_none(
        f"not noticed: {case}" for case, given in wrong.items() if not list(wrong_dependencies(*given))
    )


def test_check_of_copies_can_fail():
    lines = "\n".join(f"  line {number};\n" for number in range(N_LINE))
    first, second = {"a.js": f"a\n{lines}\nb"}, {"b.css": f"c\n\n{lines}\nd"}
    assert copies({"a": first, "b": second}) == [f"a.js:2 and b.css:3 share {N_LINE} lines from 'line 0;'"]
    assert copies({"a": first | second}) == []
    assert copies({"a": first, "b": {"b.js": lines.replace("line 2", "line 7")}}) == []


def asked(name: str, digest: str) -> Response:
    """What is answered to a request for a script."""
    scope = {"type": "http", "path_params": {"name": name, "digest": digest}}
    return script_of(Request(scope))


def test_a_script_is_where_its_message_says_and_nothing_else_is():
    name, shared, own = "present", viewer.joined("html"), SCRIPTS["present.js"]
    ending = (ROOT / "ui" / "streamlit_fixes" / "newest_message.js").read_text(encoding="utf-8")
    style = json.dumps(STYLES["present.css"])
    wanted = "\n".join([shared, own, ending, f"export const style = {style};"])
    digest = sha256(wanted.encode()).hexdigest()[:16]

    answer = asked(name, digest)
    assert answer.status_code == 200
    assert answer.media_type == "text/javascript"
    assert "immutable" in answer.headers["cache-control"]
    assert bytes(answer.body).decode() == wanted
    for requested, requested_digest in (
        (name, "0" * 16),
        ("..", digest),
        ("shared", digest),
        ("nothing", digest),
    ):
        assert asked(requested, requested_digest).status_code == 404
