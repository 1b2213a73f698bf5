"""Pages of the public names: signature, docstring, raises, source and an example of each, read from the code by `make docs`.

A hook of mkdocs. The names, and the pages they are on, are those of ``attnviz/__init__.pyi``; nothing of attnviz is imported.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
EXAMPLES = Path(__file__).with_name("examples.md")
PAGES = {
    "model": ("Models and traces", "From a name, a network in memory or arrays, and a text, to a trace."),
    "figures": (
        "Figures",
        "Plotly figures of traces and results. A result draws itself, too: `result.figure()`.",
    ),
    "heads": ("Heads", "Numbers of all heads, and what differs between two traces."),
    "effects": ("Effects", "What changes an outcome, and what the outcome is made of."),
    "maps": ("Maps", "From vectors to points."),
    "corpus": (
        "Many texts",
        "What every head does over many texts. Larger ones: [Many texts](../corpus.md).",
    ),
    "bundle": ("Bundles", "A view of a trace in one file."),
    "records": ("Records", "What the functions give: frozen, with read-only float32 numpy arrays."),
    "errors": ("Errors", "Every error says what was asked, what was found and what to do next."),
}
"""Title and first sentence of a page, by folder of attnviz."""
SECTIONS = ("Args", "Raises", "Source", "Returns")
WIDE = 88
"""Columns of a signature, before each argument gets a line."""


class Thing(NamedTuple):
    """A public name, and its definition."""

    name: str
    page: str
    file: Path
    node: ast.ClassDef | ast.FunctionDef


def public() -> Iterator[Thing]:
    """The names of ``attnviz/__init__.pyi`` that are no folders, and the figures."""
    for file in ("attnviz/__init__.pyi", "attnviz/figures/__init__.py"):
        for statement in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
            if not isinstance(statement, ast.ImportFrom) or statement.module is None:
                continue
            module = f"{'attnviz.' if statement.level else ''}{statement.module}"
            page = module.split(".")[1]
            for alias in statement.names:
                path, node = found(module, alias.name)
                shown = f"figures.{alias.name}" if page == "figures" else alias.name
                yield Thing(shown, page, path, node)


def found(module: str, name: str) -> tuple[Path, ast.ClassDef | ast.FunctionDef]:
    """The file and the definition of a name, which a folder's ``__init__`` may import from another module."""
    place = ROOT.joinpath(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef) and statement.name == name:
            return path, statement
        if (
            isinstance(statement, ast.ImportFrom)
            and statement.module
            and name in {a.name for a in statement.names}
        ):
            return found(statement.module, name)
    raise LookupError(f"{name} is not in {path}")


def page_of(page: str, things: list[Thing], examples: dict[str, str]) -> str:
    """The Markdown of a page."""
    title, first = PAGES[page]
    parts = [f"# {title}", first]
    for thing in things:
        parts += [f"## {thing.name}", *described(thing)]
        if (example := examples.get(thing.name)) is not None:
            parts += [example]
    return "\n\n".join(parts) + "\n"


def described(thing: Thing) -> Iterator[str]:
    """Signature and docstring, and those of a class's fields and methods."""
    node = thing.node
    where = thing.file.relative_to(ROOT).as_posix()
    if isinstance(node, ast.FunctionDef):
        yield signature(node, f"attnviz.{thing.name}")
        yield from written(ast.get_docstring(node) or "")
        yield f"Defined in `{where}`."
        return
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield f"```python\nclass attnviz.{thing.name}({bases})\n```"
    yield from written(ast.get_docstring(node) or "")
    yield f"Defined in `{where}`."
    if rows := list(fields(node)):
        yield "| field | |\n|---|---|\n" + "\n".join(rows)
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and not is_hidden(method):
            yield f"### {thing.name}.{method.name}"
            yield signature(method, method.name)
            yield from written(ast.get_docstring(method) or "")


def decorators(node: ast.FunctionDef) -> set[str]:
    """The names of what decorates a function."""
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def is_hidden(node: ast.FunctionDef) -> bool:
    """Whether a method is in the table of fields, or is one form of another."""
    return bool({"property", "overload"} & decorators(node))


def fields(node: ast.ClassDef) -> Iterator[str]:
    """A row of a table for each field and property: name, type, and the first paragraph about it."""
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name, kind = statement.target.id, ast.unparse(statement.annotation)
            said = (
                after.value.value
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                else ""
            )
        elif isinstance(statement, ast.FunctionDef) and "property" in decorators(statement):
            name, kind = statement.name, ast.unparse(statement.returns) if statement.returns else ""
            said = ast.get_docstring(statement) or ""
        else:
            continue
        if not name.startswith("_") and not kind.startswith("ClassVar"):
            told = " ".join(plain(str(said).strip().split("\n\n")[0]).split())
            cell = f"`{kind}`{'. ' * bool(told)}{told}".replace("|", "\\|")
            yield f"| `{name}` | {cell} |"


def signature(node: ast.FunctionDef, name: str) -> str:
    """How a function is called, with the type of each argument and of what it gives."""
    args = node.args
    first = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(first) - len(args.defaults)) + list(args.defaults)
    told = [one(argument, default) for argument, default in zip(first, defaults, strict=True)]
    told = told[1:] if first and first[0].arg in ("self", "cls") else told
    if args.vararg:
        told.append("*" + one(args.vararg, None))
    elif args.kwonlyargs:
        told.append("*")
    told += [
        one(argument, default) for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    if args.kwarg:
        told.append("**" + one(args.kwarg, None))
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({', '.join(told)}){gives}"
    if len(line) > WIDE:
        line = f"{name}(\n" + "".join(f"    {argument},\n" for argument in told) + f"){gives}"
    return f"```python\n{line.replace(chr(39), chr(34))}\n```"


def one(argument: ast.arg, default: ast.expr | None) -> str:
    """An argument with its type and its default."""
    kind = f": {ast.unparse(argument.annotation).strip(chr(39))}" if argument.annotation else ""
    return f"{argument.arg}{kind}{'' if default is None else f' = {ast.unparse(default)}'}"


def plain(text: str) -> str:
    """Double backticks as Markdown has them."""
    return text.replace("``", "`")


def written(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: its sections as lists, its examples as code."""
    for block in re.split(r"\n\s*\n", docstring.strip()):
        head, _, rest = block.partition("\n")
        if block.lstrip().startswith(">>>"):
            yield f"```pycon\n{block}\n```"
        elif head.rstrip(":") in SECTIONS and head.endswith(":"):
            yield f"**{head.rstrip(':')}**\n\n" + "\n".join(entries(rest))
        elif head.startswith("Source:"):
            yield plain(f"**Source** {block.removeprefix('Source:').strip()}")
        else:
            yield plain(block)


def entries(lines: str) -> Iterator[str]:
    """The entries of a section as a list; an entry's further lines are indented."""
    lines = re.sub(r"\n {5,}(?=\S)", " ", f"\n{lines}").strip("\n")
    for line in lines.splitlines():
        names, colon, said = line.strip().partition(":")
        if colon and re.fullmatch(r"[\w*, .]+", names) and names != "Others as for `trace`":
            yield f"- {', '.join(f'`{name.strip()}`' for name in names.split(','))}: {plain(said.strip())}"
        else:
            yield f"- {plain(line.strip())}"


def read_examples() -> dict[str, str]:
    """The block of code below each heading of ``examples.md``, by name."""
    text = EXAMPLES.read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\S+)\n\n(```python\n.*?^```)$", text, re.MULTILINE | re.DOTALL))


def lacking(things: list[Thing], examples: dict[str, str]) -> list[str]:
    """Names without an example, errors aside, and examples of what is no public name."""
    unknown = sorted(set(examples) - {thing.name for thing in things})
    without = [
        thing.name
        for thing in things
        if thing.page != "errors"
        and thing.name not in examples
        and ">>>" not in (ast.get_docstring(thing.node) or "")
    ]
    return without + unknown


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages to those that are in files."""
    from mkdocs.exceptions import PluginError
    from mkdocs.structure.files import File

    things, examples = list(public()), read_examples()
    if wrong := lacking(things, examples):
        raise PluginError(
            f"docs/site/examples.md: an example is missing, or of no public name: {', '.join(wrong)}"
        )
    for page in PAGES:
        of_page = [thing for thing in things if thing.page == page]
        files.append(File.generated(config, f"api/{page}.md", content=page_of(page, of_page, examples)))
    return files
