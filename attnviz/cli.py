"""The `attnviz` command: verify a text, export a view of it, measure its heads' effects, start the app, list the models, download one.

What takes long to import is imported by the command that needs it, so that ``--help`` answers and Ctrl+C is heeded at
once.
"""

import argparse
import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from attnviz import __version__
from attnviz.errors import AttnvizError, BundleError, InvalidTextError, SelectionError, cause, enough_memory
from attnviz.terminal import prepare_output, stoppable

if TYPE_CHECKING:
    from attnviz.corpus.profile import Profile
    from attnviz.corpus.running import Progress as CorpusProgress
    from attnviz.corpus.token_index import TokenIndex
    from attnviz.model.catalogue import Offer
    from attnviz.records import AttentionPattern, Provenance, Tokens, VerificationReport

PASSED, FAILED, ERROR = 0, 1, 2
"""Exit codes, beside 130 and 143 of `attnviz.terminal.stoppable`."""
TRACEBACK = "ATTNVIZ_TRACEBACK"
"""Environment variable: if it is set, an error that attnviz did not expect is printed with its traceback."""
Facts = dict[str, Any]
_LONGEST_SHOWN = 20
"""Characters of a wrong number that are shown."""


class Answer(NamedTuple):
    """What a command has to say."""

    code: int
    """The exit code."""
    words: str
    """What is printed."""
    facts: Facts
    """What is printed with ``--json``, beside the command and the version: numbers, arrays and texts by name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command with these arguments (those of the process when None).

    0 on success, 1 when a verification does not pass, 2 for an error, which is printed as one line on stderr. A signal ends the
    process with 130 (Ctrl+C) or 143 (SIGTERM), see `attnviz.terminal.stoppable`. With ``--json`` the answer, or the error, is one JSON
    document on stdout.

    Raises:
        SystemExit: from argparse, for ``--help``, ``--version`` and arguments it does not know.
    """
    prepare_output()
    written = sys.argv[1:] if argv is None else argv
    as_json = "--json" in takewhile(lambda word: word != "--", written)  # known before the rest is read
    try:
        with stoppable(to_the_end=argv is None) as stop, enough_memory():
            arguments = _parser(as_json=as_json).parse_args(argv)
            if arguments.command in ("corpus", "download"):
                stop.sentence = "Stopped. Run the same command again to go on from there."
            stop.is_line_open = arguments.command == "download"
            code, printed, facts = _COMMANDS[arguments.command](arguments)
            if as_json:
                command = " ".join(filter(None, (arguments.command, getattr(arguments, "what", None))))
                printed = _document({"command": command, "attnviz": __version__, **facts})
    except AttnvizError as error:
        return _refused(str(error), as_json=as_json)
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # as `failures_of`
            raise
        if os.environ.get(TRACEBACK):
            _tell(traceback.format_exc())
        sentence = f"An error that attnviz did not expect: {cause(error)} Set {TRACEBACK}=1 to see where, and report it."
        return _refused(sentence, as_json=as_json)
    try:
        print(printed, flush=True)
    except BrokenPipeError:  # as in `attnviz models | head -1`: who reads has enough
        return code
    except OSError as error:
        return _refused(f"The result could not be printed: {error.strerror}.", as_json=False)
    return code


def _refused(sentence: str, *, as_json: bool) -> int:
    _tell(f"attnviz: {sentence}")
    if as_json:
        _print_error(sentence)
    return ERROR


def _print_error(sentence: str) -> None:
    with suppress(OSError):
        print(_document({"error": sentence}), flush=True)


def _document(facts: Facts) -> str:
    """One line of JSON, in ASCII for every encoding."""
    return json.dumps(_plain(facts), allow_nan=False)


def _plain(fact: Any) -> Any:
    """A fact in the types of JSON, float32 in full; null for what is no finite number."""
    if hasattr(fact, "tolist"):  # of NumPy, which is not imported for this
        fact = fact.tolist()
    if isinstance(fact, Mapping):
        return {name: _plain(value) for name, value in fact.items()}
    if isinstance(fact, list | tuple):
        return [_plain(value) for value in fact]
    return None if isinstance(fact, float) and not math.isfinite(fact) else fact


class _Parser(argparse.ArgumentParser):
    """Takes no argument for another: options are written out, and no value is empty."""

    def __init__(self, *, as_json: bool, **named: Any) -> None:
        super().__init__(allow_abbrev=False, **named)
        self.as_json = as_json
        self.register("type", None, _value)  # of all arguments without a type of their own

    def add_commands(self, dest: str) -> Callable[[str, str], "_Parser"]:
        """A function that adds a command, given its name and what it does."""
        action = self.add_subparsers(dest=dest, required=True, metavar=dest)
        action.type = str  # is given all arguments of a command, which has types for them
        return lambda name, does: action.add_parser(
            name, help=does, description=f"{does[0].upper()}{does[1:]}.", as_json=self.as_json
        )

    def error(self, message: str) -> NoReturn:
        """Ends the process, as argparse has it."""
        if self.as_json:
            _print_error(message)
        super().error(message)


def _value(written: str) -> str:
    """The value of an argument that is not a text."""
    if not written.strip():
        raise argparse.ArgumentTypeError("it is empty; give a value")
    if written == "-":
        raise argparse.ArgumentTypeError(
            "- stands for standard input, which only the text and --second are read from; give a name"
        )
    return written


def _path(written: str) -> Path:
    return Path(_value(written))


def _names(written: str) -> list[str]:
    return [_value(name).strip() for name in written.split(",")]


def _number(written: str) -> int:
    try:
        return int(written)
    except ValueError:  # also of more than 4,300 digits
        shown = written if len(written) <= _LONGEST_SHOWN else f"{written[:_LONGEST_SHOWN]}…"
        raise argparse.ArgumentTypeError(f"{shown!r} is not a whole number such as 0 or 3") from None


def _rows(written: str) -> slice:
    first, colon, stop = written.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{written!r} is not a range of rows such as 0:100")
    return slice(_number(first) if first else None, _number(stop) if stop else None)


def _port(written: str) -> int:
    port = _number(written)
    if not 0 < port < 2**16:
        raise argparse.ArgumentTypeError(f"{port} is no port; give one from 1 to {2**16 - 1}")
    return port


def _parser(*, as_json: bool = False) -> argparse.ArgumentParser:
    from attnviz.corpus.texts import SUFFIXES
    from attnviz.records import KINDS

    parser = _Parser(
        prog="attnviz",
        description="Show the attention of transformer models and verify it.",
        epilog="Exit codes: 0 for success, 1 if a verification does not pass, 2 for an error, 130 after Ctrl+C, 143 after SIGTERM. "
        f"{TRACEBACK}=1 prints the traceback of an error that attnviz did not expect. With --json every command but app prints one JSON "
        "document instead of its words.",
        as_json=as_json,
    )
    parser.add_argument("--version", action="version", version=f"attnviz {__version__}")
    add = parser.add_commands("command")

    verify = add("verify", "compare attnviz's attention for a text with the model's own")
    export = add("export", "write one head's matrix with its provenance")
    effects = add("effects", "switch off every head in turn and write what happens to an outcome")
    model = "a name that `attnviz models` lists, a Hub id, a checkpoint folder, or a GGUF file"
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    for command in (verify, export, effects):
        command.add_argument(
            "text",
            type=str,
            nargs="?" if is_piped else None,
            default="-",
            help="what the model reads; -, or no text where one is piped, reads it from standard input, in UTF-8; write -- before a "
            "text that begins with a hyphen",
        )
        command.add_argument(
            "--second",
            type=str,
            metavar="TEXT",
            help="second sentence of a pair; - reads it from standard input",
        )
        command.add_argument("--model", help=model)
    export.add_argument("--layer", type=_number, required=True, help="counted from 0")
    export.add_argument("--head", type=_number, required=True, help="counted from 0")
    export.add_argument(
        "--rows",
        type=_rows,
        default=slice(None),
        metavar="FIRST:STOP",
        help="with --json, the queries whose rows are written, such as 0:100 for the first hundred; all by default",
    )
    export.add_argument(
        "--out",
        type=_path,
        required=not as_json,
        metavar="PATH",
        help="a folder for the files, or a file called *.zip; not needed with --json",
    )

    effects.add_argument(
        "--outcome",
        required=True,
        help='what is measured: "answer:last:door:window" for the logit of one token minus that of another, predicted at the last '
        'token, or "answer:7:door" and "rank:7:door" for its probability and rank at token 7; "state:7" or "length:7" for how far '
        'the last hidden state of token 7 turns or moves; "similarity:another sentence"; or "class:LABEL"',
    )
    effects.add_argument(
        "--ablation",
        choices=("zero", "mean"),
        default="zero",
        help="what a head gives while it is off: zeros, or its mean output at each position of the bundled sentences",
    )
    effects.add_argument("--kind", choices=KINDS, help="kind of attention; the model's first by default")
    effects.add_argument(
        "--out",
        type=_path,
        required=not as_json,
        metavar="FILE",
        help="a file called *.csv; not needed with --json",
    )

    corpus = add("corpus", "many texts: what every head does over them, and their tokens by their vectors")
    add_of_corpus = corpus.add_commands("what")
    profile = add_of_corpus(
        "profile",
        "measure every head over the texts of files and write a profile; a run that was stopped goes on",
    )
    index = add_of_corpus(
        "index",
        "write an index of the tokens of files, by their vectors in a layer; a run that was stopped goes on",
    )
    for command, written in ((profile, "profile"), (index, "index")):
        command.add_argument(
            "texts",
            nargs="+",
            metavar="TEXTS",
            help="files, folders, or patterns in quotation marks: " + ", ".join(SUFFIXES),
        )
        command.add_argument("--model", help=model)
        command.add_argument(
            "--out", type=_path, required=True, metavar="DIR", help=f"a folder for the {written}"
        )
        command.add_argument(
            "--column", metavar="NAME", help="column of a table that holds the texts; text by default"
        )
        command.add_argument(
            "--label",
            metavar="PIPELINE",
            help='"spacy", or the name of a spaCy pipeline, to label the words of texts that bring no labels',
        )
    profile.add_argument("--ray", metavar="ADDRESS", help="a Ray cluster to run on, such as ray://host:10001")
    index.add_argument("--layer", type=_number, required=True, help="counted from 0")
    index.add_argument(
        "--vectors",
        type=_names,
        default="hidden,query,key",
        metavar="NAMES",
        help="what tokens can be compared by, separated by commas: hidden, query and key; all three by default",
    )

    app = add("app", "start the app and print its address")
    app.add_argument("--port", type=_port, default=8501, help="8501 by default")
    app.add_argument("--address", default="localhost", help="what is listened on; localhost by default")

    models = add("models", "list the models on offer, and which of them are on this disk")

    download = add("download", "download a model from the Hub")
    download.add_argument("model", help="a name that `attnviz models` lists, or a Hub id")
    for command in (verify, export, effects, profile, index, models, download):
        command.add_argument(
            "--json",
            action="store_true",
            help='print one JSON document and nothing else, an error as {"error": "..."}',
        )
    return parser


def _verify(arguments: argparse.Namespace) -> Answer:
    from attnviz.figures.numbers import counted
    from attnviz.model.loading import load_model
    from attnviz.model.verification import verify
    from attnviz.records import FILE

    text, second = _texts(arguments)
    model = load_model(arguments.model)
    trace = model.trace(text, second)
    report = verify(model, trace)
    facts = {
        **_checked(report),
        "n_token": len(trace.tokens),
        "layers": _layers(report),
        "weights_of_the_file": report.check(FILE).reason,
    }
    source, verdict = facts["model"], facts["verdict"]
    lines = [
        f"{source['name']} ({source['revision']}), {source['dtype']}, {counted(facts['n_token'], 'token')}",
        "",
        _checks(verdict["checks"]),
        "",
        _by_layer(facts["layers"]),
        "",
        f"{FILE}: {facts['weights_of_the_file']}",
        *(f"{name}: not compared. {reason}" for name, reason in verdict["not_compared"].items()),
        "passed" if report.passed else "FAILED",
    ]
    return Answer(PASSED if report.passed else FAILED, "\n".join(lines), facts)


def _export(arguments: argparse.Namespace) -> Answer:
    from attnviz.bundle.bounds import MOST_TOKENS, check_sizes
    from attnviz.bundle.bundle import Bundle
    from attnviz.bundle.writing import bundle_files, write_bundle
    from attnviz.model.loading import load_model
    from attnviz.model.verification import verify

    out = arguments.out
    if out is not None:
        _check_out(out, is_file=_ends(out, ".zip"))
        _check_own_bundle(out)
    if out is not None and arguments.rows != slice(None):
        raise SelectionError(
            "Some rows were asked for with --rows, and a bundle with --out, which holds the whole matrix. Write rows with --json alone."
        )
    text, second = _texts(arguments)
    model = load_model(arguments.model)
    trace = model.trace(text, second)
    if out is not None:
        check_sizes(trace)
    pattern = trace.pattern(arguments.layer, arguments.head, rows=arguments.rows)
    if pattern.weights.size > MOST_TOKENS**2:
        raise SelectionError(
            f"The weights of {len(pattern.queries):,} queries on {len(pattern.keys):,} keys were asked for; at most {MOST_TOKENS**2:,} are "
            f"written. Select rows: --rows 0:{MOST_TOKENS**2 // len(pattern.keys)}."
        )
    report = verify(model, trace)
    if out is not None:
        query, key = _strongest_link(pattern)
        bundle = Bundle(
            trace=trace,
            report=report,
            kind=pattern.kind,
            layer=arguments.layer,
            head=arguments.head,
            queries=pattern.queries,
            keys=pattern.keys,
            query=query,
            key=key,
            weights_sha256=model.weights_sha256,
        )
        if _ends(out, ".zip"):
            files = {out: write_bundle(bundle)}
        else:
            files = {out / name: content for name, content in bundle_files(bundle).items()}
        _write_files(out, files)
    facts = {
        "kind": pattern.kind,
        "layer": pattern.layer,
        "head": pattern.head,
        "queries": _side(trace.query_tokens()),
        "rows": pattern.queries.positions,
        "keys": _side(trace.key_tokens()),
        "weights": pattern.weights,
        "scores": pattern.scores,
    }
    return _of_trace(report, [], out, facts)


def _effects(arguments: argparse.Namespace) -> Answer:
    from attnviz.effects.ablation import COLUMNS, ablate, ablate_layers
    from attnviz.effects.mean_outputs import mean_outputs
    from attnviz.effects.outcome import measured, outcome_from
    from attnviz.maps.collection import bundled
    from attnviz.model.loading import load_model
    from attnviz.model.verification import verify
    from attnviz.records import heads_in
    from attnviz.records.table import table_csv

    outcome, out = outcome_from(arguments.outcome), arguments.out
    if out is not None:
        if not _ends(out, ".csv"):
            raise SelectionError(f"{out} is not the name of a CSV file. Give a name such as effects.csv.")
        _check_out(out, is_file=True)
        _check_own(out, lambda content: content.startswith(table_csv(COLUMNS, [])), "a table of effects")
    text, second = _texts(arguments)
    model = load_model(arguments.model)
    trace = model.trace(text, second)
    measure = measured(model, trace, outcome)
    trace.n_layers(arguments.kind or trace.kinds[0])  # refuses a kind before anything takes long
    report = verify(model, trace)
    means = mean_outputs(model, bundled().splitlines()) if arguments.ablation == "mean" else None
    effects = ablate(model, trace, measure, kind=arguments.kind, means=means)
    layers = ablate_layers(model, trace, measure, kind=arguments.kind, means=means)
    if out is not None:
        _write_files(out, {out: effects.csv(layers)})
    words = outcome.words(trace.last_tokens)
    facts = {
        "outcome": {"name": str(outcome), "words": words, "unit": measure.unit},
        "base": effects.base,
        "kind": effects.kind,
        "ablation": effects.ablation,
        "heads": [
            dict(zip(COLUMNS, (*head, effects.heads[head], effects.effects[head]), strict=True))
            for head in heads_in(effects.heads)
        ],
        "layers": [
            {"layer": layer, "outcome": layers.layers[layer], "effect": layers.effects[layer]}
            for layer in range(len(layers.layers))
        ],
    }
    rows = [(head.words, f"{effects.effects[head]:+.3g}") for head in effects.ranked()[:5]]
    lines = [
        f"{words}: {effects.base:.6g} ({measure.unit})",
        _table(("largest effects", "change"), rows),
    ]
    return _of_trace(report, lines, out, facts)


def _of_trace(report: "VerificationReport", lines: list[str], out: Path | None, facts: Facts) -> Answer:
    """The answer of a command that computes something of a trace, with the verdict on the trace."""
    failed, n_check = [check.name for check in report.failed], len(report.checks)
    verdict = f"{n_check - len(failed)} of {n_check} checks passed"
    verdict += f"; failed: {', '.join(failed)}" * bool(failed)
    if failed:
        _tell("attnviz: the numbers do not match the model's")
    return Answer(
        FAILED if failed else PASSED,
        "\n".join([*lines, verdict, *[str(out)] * (out is not None)]),
        {**_checked(report), **facts, "out": None if out is None else str(out)},
    )


def _checked(report: "VerificationReport") -> Facts:
    """The model of a trace, and how its numbers compare with the model's own."""
    checks = [
        {
            "name": check.name,
            "unit": check.unit,
            "largest_difference": check.difference,
            "tolerance": check.tolerance,
            "passed": check.passed,
        }
        for check in report.checks
    ]
    return {
        "model": _source(report.provenance),
        "verdict": {"passed": report.passed, "checks": checks, "not_compared": report.not_compared},
    }


def _source(provenance: "Provenance") -> Facts:
    return {"name": provenance.model, "revision": provenance.revision, "dtype": provenance.dtype}


def _side(tokens: "Tokens") -> Facts:
    return {"labels": tokens.labels, "ids": tokens.ids}


def _texts(arguments: argparse.Namespace) -> tuple[str, str | None]:
    """The text and the second one, read from standard input where they are "-"."""
    texts: list[str | None] = [arguments.text, arguments.second]
    if texts == ["-", "-"]:
        raise SelectionError("Standard input (-) can be one of both texts. Write the other one.")
    if "-" in texts:
        texts[texts.index("-")] = _standard_input()
    for text in (*texts, getattr(arguments, "outcome", None)):
        for character in text or "":
            if "\udc80" <= character <= "\udcff":  # how Python has bytes that it cannot decode
                raise InvalidTextError(
                    f"The text has the byte 0x{ord(character) - 0xDC00:02X}, which is not UTF-8. Write it in UTF-8."
                )
    return str(texts[0]), texts[1]


def _standard_input() -> str:
    """What is piped to the command, without the line end that `echo` adds."""
    try:
        content = sys.stdin.buffer.read() if sys.stdin else b""
    except OSError as error:
        raise InvalidTextError(
            f"Standard input cannot be read: {error.strerror}. Pipe a text to it."
        ) from None
    return content.decode("utf-8-sig", "surrogateescape").removesuffix("\n").removesuffix("\r")


def _ends(path: Path, suffix: str) -> bool:
    return path.suffix.lower() == suffix


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """A context that raises BundleError for an OSError."""
    try:
        yield
    except OSError as error:
        raise BundleError(f"{out} cannot be written: {error.strerror}. Give another path.") from None


def _check_out(out: Path, *, is_file: bool) -> None:
    """Refuses, before anything is computed, a path that cannot be written or is of the other sort."""
    with _writing(out):
        if out.exists() and not (out.is_file() if is_file else out.is_dir()):
            raise BundleError(f"{out} is not a {'file' if is_file else 'folder'}. Give another path.")
        places = (out, *out.absolute().parents) if not is_file else out.absolute().parents
        with TemporaryFile(dir=next(place for place in places if place.exists())):
            pass


def _check_own(out: Path, is_own: Callable[[bytes], bool], what: str) -> None:
    """Refuses to write over a file that attnviz did not write."""
    with _writing(out):
        if out.exists() and not is_own(out.read_bytes()):
            raise BundleError(f"{out} already exists and is not {what}. Give another file name.")


def _write_files(out: Path, files: Mapping[Path, bytes]) -> None:
    """Writes files each of which is whole or not there, also when the disk is full or the command is stopped."""
    with _writing(out):
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.part")
            try:
                part.write_bytes(content)
                os.replace(part, path)
            except OSError:
                part.unlink(missing_ok=True)
                raise


def _strongest_link(pattern: "AttentionPattern") -> tuple[int, int]:
    """The selected query and key: the largest weight between two different tokens that are not special."""
    import numpy as np

    weights = pattern.weights.copy()
    if pattern.kind != "cross":
        np.fill_diagonal(weights, -1)
    weights[:, pattern.keys.is_special] -= 2  # not masked: a text may have no other pair
    weights[pattern.queries.is_special, :] -= 2
    query, key = np.unravel_index(weights.argmax(), weights.shape)
    return int(query), int(key)


def _check_own_bundle(out: Path) -> None:
    """Refuses to write over what is not a bundle: a zip, or files of one in a folder."""
    from attnviz.bundle.document import is_provenance
    from attnviz.bundle.reading import read_bundle
    from attnviz.bundle.writing import MATRIX, NUMBERS, PAGE, PROVENANCE

    def is_bundle(content: bytes) -> bool:
        with suppress(BundleError):
            return read_bundle(content) is not None
        return False

    if _ends(out, ".zip"):
        _check_own(out, is_bundle, "a bundle")
        return
    there = [name for name in (PROVENANCE, PAGE, MATRIX, NUMBERS) if (out / name).exists()]
    provenance = out / PROVENANCE
    if there and not (provenance.is_file() and is_provenance(provenance.read_bytes())):
        raise BundleError(f"{out} has a {there[0]} that attnviz did not write. Give another folder.")


def _checks(checks: Sequence[Facts]) -> str:
    rows = [
        (
            check["name"],
            f"{check['largest_difference']:.1e}",
            f"{check['tolerance']:.1e}",
            check["unit"],
            "yes" if check["passed"] else "NO",
        )
        for check in checks
    ]
    return _table(("compared", "largest difference", "tolerance", "in", "passed"), rows)


def _layers(report: "VerificationReport") -> list[Facts]:
    """The largest difference of a weight in each layer, and its head."""
    from attnviz.records import WEIGHTS

    check = report.check(WEIGHTS)
    layers = []
    for kind, errors in check.differences.items():
        for layer, (row, there) in enumerate(zip(errors, check.compared(kind), strict=True)):
            heads = row[there]
            layers.append(
                {
                    "kind": kind,
                    "layer": layer,
                    "largest_difference": heads.max(),
                    "head": int(heads.argmax()),
                }
            )
    return layers


def _by_layer(layers: Sequence[Facts]) -> str:
    rows = [
        (layer["kind"], str(layer["layer"]), f"{layer['largest_difference']:.1e}", str(layer["head"]))
        for layer in layers
    ]
    return _table(("attention", "layer", "largest weight difference", "in head"), rows)


def _tell_texts(now: "CorpusProgress") -> None:
    failed = f", {now.n_failed:,} failed" * bool(now.n_failed)
    left = timedelta(seconds=round(now.seconds_left))
    _tell(f"{now.n_done:,} of {now.n_all:,} texts{failed}, {now.per_second:,.1f} a second, {left} left")


def _tell(line: str) -> None:
    """A line on stderr; where it cannot be written, the command goes on without it."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _corpus(arguments: argparse.Namespace) -> Answer:
    _check_out(arguments.out, is_file=False)
    return _index(arguments) if arguments.what == "index" else _profile(arguments)


def _profile(arguments: argparse.Namespace) -> Answer:
    from attnviz.corpus.pipeline import profile_corpus
    from attnviz.figures.numbers import counted

    profile = profile_corpus(
        arguments.texts,
        arguments.model,
        arguments.out,
        column=arguments.column,
        label=arguments.label,
        ray=arguments.ray,
        progress=_tell_texts,
    )
    return _made(
        profile,
        arguments.out,
        f"{arguments.out}: {counted(len(profile.table), 'head')} of {profile.provenance.model} over "
        f"{counted(profile.n_text, 'text')} ({counted(profile.n_token, 'token')})",
        compared="statistics",
        facts={"n_head": len(profile.table)},
    )


def _index(arguments: argparse.Namespace) -> Answer:
    from attnviz.corpus.indexing import index_corpus
    from attnviz.figures.numbers import counted, percent_text, share_text

    def tell_graph(share: float) -> None:
        _tell(f"Building the graph: {percent_text(share)}")

    index = index_corpus(
        arguments.texts,
        arguments.model,
        arguments.out,
        layer=arguments.layer,
        vectors=arguments.vectors,
        column=arguments.column,
        label=arguments.label,
        progress=_tell_texts,
        building=tell_graph,
    )
    return _made(
        index,
        arguments.out,
        f"{arguments.out}: {counted(index.n_token, 'token')} of {counted(index.n_text, 'text')} by "
        f"{', '.join(index.vectors)} in layer {index.layer} of {index.provenance.model}",
        *(
            f"{kind}: searched along a graph, which finds {share_text(recall)} of the ten nearest"
            for kind, recall in index.recalls.items()
        ),
        compared="vectors",
        facts={"layer": index.layer, "vectors": index.vectors, "recalls": index.recalls},
    )


def _made(
    made: "Profile | TokenIndex",
    out: Path,
    *lines: str,
    compared: Literal["statistics", "vectors"],
    facts: Facts,
) -> Answer:
    """The answer of a run over texts, with the verdict on those of them that were verified."""
    from attnviz.figures.numbers import counted

    passed = made.n_passed == made.n_verified
    reasons = str(out / "failed.parquet") if made.n_failed else None
    words = [
        *lines,
        f"{made.n_passed:,} of {made.n_verified:,} verified texts passed: weights to {made.worst_error:.1e}, {compared} to "
        f"{made.worst_difference:.1e}",
        *[f"{counted(made.n_failed, 'text')} failed; {reasons} says why"] * bool(reasons),
    ]
    verdict = {
        "passed": passed,
        "n_verified": made.n_verified,
        "n_passed": made.n_passed,
        "largest_differences": {"weights": made.worst_error, compared: made.worst_difference},
    }
    about = {
        "model": _source(made.provenance),
        "verdict": verdict,
        "n_text": made.n_text,
        "n_token": made.n_token,
        "n_failed": made.n_failed,
        "failed": reasons,
        "out": str(out),
    }
    return Answer(PASSED if passed else FAILED, "\n".join(words), {**about, **facts})


def _app(arguments: argparse.Namespace) -> Answer:
    from attnviz.starting import start

    return Answer(start(arguments.address, arguments.port), "", {})


def _list_models(_: argparse.Namespace) -> Answer:
    from attnviz.model.catalogue import default_model, offers

    default = default_model()
    models = [
        {
            "name": offer.name,
            "default": offer.name == default,
            **_whereabouts(offer),
            "description": offer.description,
        }
        for offer in offers()
    ]
    rows = [
        (model["name"], "default" * model["default"], _where(model), model["description"]) for model in models
    ]
    return Answer(PASSED, _table(("model", "", "weights", "about"), rows), {"models": models})


def _whereabouts(offer: "Offer") -> Facts:
    from attnviz.model.catalogue import CONFIG_FILE, locate

    location = locate(offer)
    path = None if location is None else location.gguf or location.folder
    return {
        "path": None if path is None else str(path),
        "revision": None if location is None else location.revision,
        "on_disk": location is not None
        and (location.gguf is not None or (location.folder / CONFIG_FILE).is_file()),
        "download_bytes": offer.download_bytes,
    }


def _where(model: Facts) -> str:
    from attnviz.model.catalogue import CONFIG_FILE

    if model["path"] is not None:
        return "on disk" if model["on_disk"] else f"folder without {CONFIG_FILE}"
    size = model["download_bytes"]
    return "not on disk" if size is None else f"not on disk, {size / 1e6:.0f} MB to download"


def _download(arguments: argparse.Namespace) -> Answer:
    from tqdm import tqdm  # type: ignore[import-untyped]

    from attnviz.model.catalogue import locate, resolve
    from attnviz.model.download import download_model

    with tqdm(desc=arguments.model, unit="B", unit_scale=True, file=sys.stderr, delay=0.1) as bar:

        def show(n_byte: int, n_total: int) -> None:
            bar.total = n_total
            try:
                bar.update(n_byte - bar.n)
            except OSError:  # stderr is closed or full: go on without
                bar.disable = True

        folder = download_model(arguments.model, on_progress=show)
    location = locate(resolve(arguments.model))
    revision = None if location is None else location.revision
    facts = {"model": {"name": arguments.model, "revision": revision}, "folder": str(folder)}
    return Answer(PASSED, str(folder), facts)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest entry, two spaces between them."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


_COMMANDS: dict[str, Callable[[argparse.Namespace], Answer]] = {
    "verify": _verify,
    "export": _export,
    "effects": _effects,
    "corpus": _corpus,
    "app": _app,
    "models": _list_models,
    "download": _download,
}
