"""The `attnviz` command: verify a text, export a view of it, measure its heads' effects, start the app, list the models, download one.

What takes long to import is imported by the command that needs it, so that ``--help`` answers and Ctrl+C is heeded at
once.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from attnviz import __version__
from attnviz.errors import AttnvizError, BundleError, InvalidTextError, SelectionError, cause, enough_memory
from attnviz.terminal import prepare_output, stoppable

if TYPE_CHECKING:
    from attnviz.corpus.profile import Profile
    from attnviz.corpus.running import Progress as CorpusProgress
    from attnviz.corpus.token_index import TokenIndex
    from attnviz.model.catalogue import Offer
    from attnviz.records import AttentionPattern, VerificationReport

PASSED, FAILED, ERROR = 0, 1, 2
"""Exit codes, beside 130 and 143 of `attnviz.terminal.stoppable`."""
TRACEBACK = "ATTNVIZ_TRACEBACK"
"""Environment variable: if it is set, an error that attnviz did not expect is printed with its traceback."""
Answer = tuple[int, str]
"""The exit code of a command, and what it prints."""
_LONGEST_SHOWN = 20
"""Characters of a wrong number that are shown."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command with these arguments (those of the process when None).

    0 on success, 1 when a verification does not pass, 2 for an error, which is printed as one line on stderr. A signal ends the
    process with 130 (Ctrl+C) or 143 (SIGTERM), see `attnviz.terminal.stoppable`.

    Raises:
        SystemExit: from argparse, for ``--help``, ``--version`` and arguments it does not know.
    """
    prepare_output()
    try:
        with stoppable(to_the_end=argv is None) as stop, enough_memory():
            arguments = _parser().parse_args(argv)
            if arguments.command in ("corpus", "download"):
                stop.sentence = "Stopped. Run the same command again to go on from there."
            stop.is_line_open = arguments.command == "download"
            code, printed = _COMMANDS[arguments.command](arguments)
    except AttnvizError as error:
        return _refused(str(error))
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # as `failures_of`
            raise
        if os.environ.get(TRACEBACK):
            _tell(traceback.format_exc())
        return _refused(
            f"An error that attnviz did not expect: {cause(error)} Set {TRACEBACK}=1 to see where, and report it."
        )
    try:
        print(printed, flush=True)
    except BrokenPipeError:  # as in `attnviz models | head -1`: who reads has enough
        return code
    except OSError as error:
        return _refused(f"The result could not be printed: {error.strerror}.")
    return code


def _refused(sentence: str) -> int:
    _tell(f"attnviz: {sentence}")
    return ERROR


class _Parser(argparse.ArgumentParser):
    """Takes no argument for another: options are written out, and no value is empty."""

    def __init__(self, **named: Any) -> None:
        super().__init__(allow_abbrev=False, **named)
        self.register("type", None, _value)  # of all arguments without a type of their own

    def add_commands(self, dest: str) -> Callable[[str, str], "_Parser"]:
        """A function that adds a command, given its name and what it does."""
        action = self.add_subparsers(dest=dest, required=True, metavar=dest)
        action.type = str  # is given all arguments of a command, which has types for them
        return lambda name, does: action.add_parser(
            name, help=does, description=f"{does[0].upper()}{does[1:]}."
        )


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


def _parser() -> argparse.ArgumentParser:
    from attnviz.corpus.texts import SUFFIXES
    from attnviz.records import KINDS

    parser = _Parser(
        prog="attnviz",
        description="Show the attention of transformer models and verify it.",
        epilog="Exit codes: 0 for success, 1 if a verification does not pass, 2 for an error, 130 after Ctrl+C, 143 after SIGTERM. "
        f"{TRACEBACK}=1 prints the traceback of an error that attnviz did not expect.",
    )
    parser.add_argument("--version", action="version", version=f"attnviz {__version__}")
    add = parser.add_commands("command")

    verify = add("verify", "compare attnviz's attention for a text with the model's own")
    export = add("export", "write one head's matrix with its provenance")
    effects = add("effects", "switch off every head in turn and write what happens to an outcome")
    model = "a name that `attnviz models` lists, a Hub id, a checkpoint folder, or a GGUF file"
    for command in (verify, export, effects):
        command.add_argument(
            "text",
            type=str,
            help="what the model reads; - reads it from standard input, in UTF-8; write -- before a text that begins with a hyphen",
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
        "--out",
        type=_path,
        required=True,
        metavar="PATH",
        help="a folder for the files, or a file called *.zip",
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
    effects.add_argument("--out", type=_path, required=True, metavar="FILE", help="a file called *.csv")

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
    app.add_argument("--port", type=_number, default=8501, help="8501 by default")
    app.add_argument("--address", default="localhost", help="what is listened on; localhost by default")

    add("models", "list the models on offer, and which of them are on this disk")

    download = add("download", "download a model from the Hub")
    download.add_argument("model", help="a name that `attnviz models` lists, or a Hub id")
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
    source = report.provenance
    lines = [
        f"{source.model} ({source.revision}), {source.dtype}, {counted(len(trace.tokens), 'token')}",
        "",
        _checks(report),
        "",
        _by_layer(report),
        "",
        f"{FILE}: {report.check(FILE).reason}",
        *(f"{name}: not compared. {reason}" for name, reason in report.not_compared.items()),
        "passed" if report.passed else "FAILED",
    ]
    return PASSED if report.passed else FAILED, "\n".join(lines)


def _export(arguments: argparse.Namespace) -> Answer:
    from attnviz.bundle.bundle import Bundle
    from attnviz.bundle.writing import bundle_files, write_bundle
    from attnviz.model.loading import load_model
    from attnviz.model.verification import verify
    from attnviz.records import Axis

    out = arguments.out
    _check_out(out, is_file=_ends(out, ".zip"))
    _check_own_bundle(out)
    text, second = _texts(arguments)
    model = load_model(arguments.model)
    trace = model.trace(text, second)
    pattern = trace.pattern(arguments.layer, arguments.head)
    query, key = _strongest_link(pattern)
    report = verify(model, trace)
    bundle = Bundle(
        trace=trace,
        report=report,
        kind=pattern.kind,
        layer=arguments.layer,
        head=arguments.head,
        queries=Axis.of(trace.query_tokens()),
        keys=Axis.of(trace.key_tokens()),
        query=query,
        key=key,
        weights_sha256=model.weights_sha256,
    )
    if _ends(out, ".zip"):
        files = {out: write_bundle(bundle)}
    else:
        files = {out / name: content for name, content in bundle_files(bundle).items()}
    _write_files(out, files)
    if not report.passed:
        _tell("attnviz: the numbers do not match the model's; see provenance.json")
    return PASSED if report.passed else FAILED, str(out)


def _effects(arguments: argparse.Namespace) -> Answer:
    from attnviz.effects.ablation import COLUMNS, ablate_heads, ablate_layers
    from attnviz.effects.mean_outputs import mean_outputs
    from attnviz.effects.outcome import measured, outcome_from
    from attnviz.maps.collection import bundled
    from attnviz.model.loading import load_model
    from attnviz.records.table import table_csv

    outcome, out = outcome_from(arguments.outcome), arguments.out
    if not _ends(out, ".csv"):
        raise SelectionError(f"{out} is not the name of a CSV file. Give a name such as effects.csv.")
    _check_out(out, is_file=True)
    _check_own(out, lambda content: content.startswith(table_csv(COLUMNS, [])), "a table of effects")
    text, second = _texts(arguments)
    model = load_model(arguments.model)
    trace = model.trace(text, second)
    measure = measured(model, trace, outcome)
    trace.n_layers(arguments.kind or trace.kinds[0])  # refuses a kind before anything takes long
    means = mean_outputs(model, bundled().splitlines()) if arguments.ablation == "mean" else None
    effects = ablate_heads(model, trace, measure, kind=arguments.kind, means=means)
    layers = ablate_layers(model, trace, measure, kind=arguments.kind, means=means)
    _write_files(out, {out: effects.csv(layers)})
    rows = [(head.words, f"{effects.effects[head]:+.3g}") for head in effects.ranked()[:5]]
    lines = [
        f"{outcome.words(trace.last_tokens)}: {effects.base:.6g} ({measure.unit})",
        _table(("largest effects", "change"), rows),
        str(out),
    ]
    return PASSED, "\n".join(lines)


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


def _checks(report: "VerificationReport") -> str:
    rows = [
        (
            check.name,
            f"{check.difference:.1e}",
            f"{check.tolerance:.1e}",
            check.unit,
            "yes" if check.passed else "NO",
        )
        for check in report.checks
    ]
    return _table(("compared", "largest difference", "tolerance", "in", "passed"), rows)


def _by_layer(report: "VerificationReport") -> str:
    from attnviz.records import WEIGHTS

    check = report.check(WEIGHTS)
    rows = []
    for kind, errors in check.differences.items():
        for layer, (row, there) in enumerate(zip(errors, check.compared(kind), strict=True)):
            heads = row[there]
            rows.append((kind, str(layer), f"{heads.max():.1e}", str(heads.argmax())))
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
        f"{profile.n_passed:,} of {profile.n_verified:,} verified texts passed: weights to {profile.worst_error:.1e}, statistics to "
        f"{profile.worst_difference:.1e}",
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
        f"{index.n_passed:,} of {index.n_verified:,} verified texts passed: weights to {index.worst_error:.1e}, vectors to "
        f"{index.worst_difference:.1e}",
    )


def _made(made: "Profile | TokenIndex", out: Path, *lines: str) -> Answer:
    from attnviz.figures.numbers import counted

    failed = f"{counted(made.n_failed, 'text')} failed; {out / 'failed.parquet'} says why"
    code = PASSED if made.n_passed == made.n_verified else FAILED
    return code, "\n".join([*lines, *[failed] * bool(made.n_failed)])


def _app(arguments: argparse.Namespace) -> Answer:
    from attnviz.starting import start

    return start(arguments.address, arguments.port), ""


def _list_models(_: argparse.Namespace) -> Answer:
    from attnviz.model.catalogue import default_model, offers

    default = default_model()
    rows = [
        (offer.name, "default" if offer.name == default else "", _whereabouts(offer), offer.description)
        for offer in offers()
    ]
    return PASSED, _table(("model", "", "weights", "about"), rows)


def _whereabouts(offer: "Offer") -> str:
    from attnviz.model.catalogue import CONFIG_FILE, locate

    location = locate(offer)
    if location is not None:
        is_there = location.gguf or (location.folder / CONFIG_FILE).is_file()
        return "on disk" if is_there else f"folder without {CONFIG_FILE}"
    size = "" if offer.download_bytes is None else f", {offer.download_bytes / 1e6:.0f} MB to download"
    return f"not on disk{size}"


def _download(arguments: argparse.Namespace) -> Answer:
    from tqdm import tqdm  # type: ignore[import-untyped]

    from attnviz.model.download import download_model

    with tqdm(desc=arguments.model, unit="B", unit_scale=True, file=sys.stderr, delay=0.1) as bar:

        def show(n_byte: int, n_total: int) -> None:
            bar.total = n_total
            try:
                bar.update(n_byte - bar.n)
            except OSError:  # stderr is closed or full: go on without
                bar.disable = True

        folder = download_model(arguments.model, on_progress=show)
    return PASSED, str(folder)


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
