"""The `attnviz` command: verify a text, export a view of it, measure its heads' effects, list the models, download one.

One concept: the command line. torch and transformers are imported when a model is loaded, so that
``--help`` answers at once.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnviz import __version__
from attnviz.corpus.texts import SUFFIXES
from attnviz.errors import AttnvizError, BundleError, SelectionError
from attnviz.model.catalogue import CONFIG_FILE, Offer, default_model, locate, offers
from attnviz.records import FILE, KINDS, WEIGHTS, AttentionPattern, VerificationReport

if TYPE_CHECKING:
    from attnviz.bundle.writing import Bundle
    from attnviz.corpus.pipeline import Progress as CorpusProgress

PASSED, FAILED, ERROR, INTERRUPTED = 0, 1, 2, 130
"""Exit codes; 130 is what shells use for Ctrl-C."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command with these arguments (those of the process when None).

    0 on success, 1 when a verification does not pass, 2 for an error, which is printed as one line on stderr.

    Raises:
        SystemExit: from argparse, for ``--help``, ``--version`` and arguments it does not know.
    """
    arguments = _parser().parse_args(argv)
    try:
        match arguments.command:
            case "verify":
                return _verify(arguments.text, arguments.second, arguments.model)
            case "export":
                return _export(arguments)
            case "effects":
                return _effects(arguments)
            case "corpus":
                return _index(arguments) if arguments.what == "index" else _profile(arguments)
            case "models":
                return _list_models()
            case _:
                return _download(arguments.model)
    except AttnvizError as error:
        print(f"attnviz: {error}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attnviz", description="Show the attention of BERT models and verify it."
    )
    parser.add_argument("--version", action="version", version=f"attnviz {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    verify = commands.add_parser("verify", help="compare attnviz's attention for a text with the model's own")
    export = commands.add_parser("export", help="write one head's matrix with its provenance")
    effects = commands.add_parser(
        "effects", help="switch off every head in turn and write what happens to an outcome"
    )
    for command in (verify, export, effects):
        command.add_argument("text", help="what the model reads")
        command.add_argument("--second", metavar="TEXT", help="second sentence of a pair")
        command.add_argument(
            "--model", help="a name that `attnviz models` lists, a Hub id, or a checkpoint folder"
        )
    export.add_argument("--layer", type=int, required=True, help="counted from 0")
    export.add_argument("--head", type=int, required=True, help="counted from 0")
    export.add_argument(
        "--out",
        type=Path,
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
    effects.add_argument("--out", type=Path, required=True, metavar="FILE", help="a file called *.csv")

    corpus = commands.add_parser(
        "corpus", help="many texts: what every head does over them, and their tokens by their vectors"
    )
    of_corpus = corpus.add_subparsers(dest="what", required=True, metavar="what")
    profile = of_corpus.add_parser(
        "profile",
        help="measure every head over the texts of files and write a profile; a run that was stopped goes on",
    )
    index = of_corpus.add_parser(
        "index",
        help="write an index of the tokens of files, by their vectors in a layer; a run that was stopped goes on",
    )
    for command, written in ((profile, "profile"), (index, "index")):
        command.add_argument(
            "texts",
            nargs="+",
            metavar="TEXTS",
            help="files, folders, or patterns in quotation marks: " + ", ".join(SUFFIXES),
        )
        command.add_argument("--model", help="as of the other commands")
        command.add_argument(
            "--out", type=Path, required=True, metavar="DIR", help=f"a folder for the {written}"
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
    index.add_argument("--layer", type=int, required=True, help="counted from 0")
    index.add_argument(
        "--vectors",
        default="hidden,query,key",
        metavar="NAMES",
        help="what tokens can be compared by, separated by commas: hidden, query and key; all three by default",
    )

    commands.add_parser("models", help="list the models on offer, and which of them are on this disk")

    download = commands.add_parser("download", help="download a model from the Hub")
    download.add_argument("model", help="a name that `attnviz models` lists, or a Hub id")
    return parser


def _verify(text: str, second: str | None, name: str | None) -> int:
    from attnviz.model.loading import load_model
    from attnviz.model.verification import verify

    model = load_model(name)
    trace = model.trace(text, second)
    report = verify(model, trace)
    source = report.provenance
    print(f"{source.model} ({source.revision}), {source.dtype}, {len(trace.tokens)} tokens")
    print()
    print(_checks(report))
    print()
    print(_by_layer(report))
    print()
    print(f"{FILE}: {report.check(FILE).reason}")
    for name, reason in report.not_compared.items():
        print(f"{name}: not compared. {reason}")
    print("passed" if report.passed else "FAILED")
    return PASSED if report.passed else FAILED


def _export(arguments: argparse.Namespace) -> int:
    from attnviz.bundle.writing import Bundle
    from attnviz.model.loading import load_model
    from attnviz.model.verification import verify
    from attnviz.records import Axis

    model = load_model(arguments.model)
    trace = model.trace(arguments.text, arguments.second)
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
    try:
        _write(bundle, arguments.out)
    except OSError as error:
        raise BundleError(
            f"{arguments.out} cannot be written: {error.strerror}. Give another path."
        ) from None
    print(arguments.out)
    if not report.passed:
        print("attnviz: the numbers do not match the model's; see provenance.json", file=sys.stderr)
    return PASSED if report.passed else FAILED


def _effects(arguments: argparse.Namespace) -> int:
    from attnviz.effects.ablation import ablate_heads, ablate_layers
    from attnviz.effects.mean_outputs import mean_outputs
    from attnviz.effects.outcome import measured, outcome_from
    from attnviz.maps.collection import bundled
    from attnviz.model.loading import load_model

    outcome, out = outcome_from(arguments.outcome), arguments.out
    if out.suffix != ".csv":
        raise SelectionError(f"{out} is not the name of a CSV file. Give a name such as effects.csv.")
    model = load_model(arguments.model)
    trace = model.trace(arguments.text, arguments.second)
    measure = measured(model, trace, outcome)
    means = mean_outputs(model, bundled().splitlines()) if arguments.ablation == "mean" else None
    effects = ablate_heads(model, trace, measure, kind=arguments.kind, means=means)
    layers = ablate_layers(model, trace, measure, kind=arguments.kind, means=means)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(effects.csv(layers))
    except OSError as error:
        raise BundleError(f"{out} cannot be written: {error.strerror}. Give another path.") from None
    print(f"{outcome.words(trace.last_tokens)}: {effects.base:.6g} ({measure.unit})")
    rows = [(head.words, f"{effects.effects[head]:+.3g}") for head in effects.ranked()[:5]]
    print(_table(("largest effects", "change"), rows))
    print(out)
    return PASSED


def _strongest_link(pattern: AttentionPattern) -> tuple[int, int]:
    """The selected query and key: the largest weight between two different tokens that are not special."""
    weights = pattern.weights.copy()
    if pattern.kind != "cross":
        np.fill_diagonal(weights, -1)
    weights[:, pattern.keys.is_special] -= 2  # not masked: a text may have no other pair
    weights[pattern.queries.is_special, :] -= 2
    query, key = np.unravel_index(weights.argmax(), weights.shape)
    return int(query), int(key)


def _write(bundle: "Bundle", out: Path) -> None:
    """Writes the zip, or its files into the folder; only files that attnviz wrote are overwritten."""
    from attnviz.bundle.document import is_provenance
    from attnviz.bundle.reading import read_bundle
    from attnviz.bundle.writing import PROVENANCE, bundle_files, write_bundle

    if out.suffix == ".zip":
        if out.exists():
            try:
                read_bundle(out.read_bytes())
            except BundleError:
                raise BundleError(
                    f"{out} already exists and is not a bundle. Give another file name."
                ) from None
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(write_bundle(bundle))
        return
    files = bundle_files(bundle)
    there = [name for name in files if (out / name).exists()]
    provenance = out / PROVENANCE
    if there and not (provenance.is_file() and is_provenance(provenance.read_bytes())):
        raise BundleError(f"{out} has a {there[0]} that attnviz did not write. Give another folder.")
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (out / name).write_bytes(content)


def _checks(report: VerificationReport) -> str:
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


def _by_layer(report: VerificationReport) -> str:
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
    print(
        f"{now.n_done:,} of {now.n_all:,} texts{failed}, {now.per_second:,.1f} a second, {left} left",
        file=sys.stderr,
        flush=True,
    )


def _profile(arguments: argparse.Namespace) -> int:
    from attnviz.corpus.pipeline import profile_corpus
    from attnviz.figures.numbers import counted

    try:
        profile = profile_corpus(
            arguments.texts,
            arguments.model,
            arguments.out,
            column=arguments.column,
            label=arguments.label,
            ray=arguments.ray,
            progress=_tell_texts,
        )
    except KeyboardInterrupt:
        print("attnviz: Stopped. Run the same command again to go on from there.", file=sys.stderr)
        return INTERRUPTED
    print(
        f"{arguments.out}: {counted(len(profile.table), 'head')} of {profile.provenance.model} over "
        f"{counted(profile.n_text, 'text')} ({counted(profile.n_token, 'token')})"
    )
    passed = profile.n_passed == profile.n_verified
    print(
        f"{profile.n_passed:,} of {profile.n_verified:,} verified texts passed: weights to {profile.worst_error:.1e}, statistics to "
        f"{profile.worst_difference:.1e}"
    )
    if profile.n_failed:
        print(f"{counted(profile.n_failed, 'text')} failed; {arguments.out / 'failed.parquet'} says why")
    return PASSED if passed else FAILED


def _index(arguments: argparse.Namespace) -> int:
    from attnviz.corpus.indexing import index_corpus
    from attnviz.figures.numbers import counted

    def tell_graph(share: float) -> None:
        print(f"Building the graph: {share:.0%}", file=sys.stderr, flush=True)

    try:
        index = index_corpus(
            arguments.texts,
            arguments.model,
            arguments.out,
            layer=arguments.layer,
            vectors=arguments.vectors.split(","),
            column=arguments.column,
            label=arguments.label,
            progress=_tell_texts,
            building=tell_graph,
        )
    except KeyboardInterrupt:
        print("attnviz: Stopped. Run the same command again to go on from there.", file=sys.stderr)
        return INTERRUPTED
    print(
        f"{arguments.out}: {counted(index.n_token, 'token')} of {counted(index.n_text, 'text')} by "
        f"{', '.join(index.vectors)} in layer {index.layer} of {index.provenance.model}"
    )
    for kind, recall in index.recalls.items():
        print(f"{kind}: searched along a graph, which finds {recall:.1%} of the ten nearest")
    print(
        f"{index.n_passed:,} of {index.n_verified:,} verified texts passed: weights to {index.worst_error:.1e}, vectors to "
        f"{index.worst_difference:.1e}"
    )
    if index.n_failed:
        print(f"{counted(index.n_failed, 'text')} failed; {arguments.out / 'failed.parquet'} says why")
    return PASSED if index.n_passed == index.n_verified else FAILED


def _list_models() -> int:
    default = default_model()
    rows = [
        (offer.name, "default" if offer.name == default else "", _whereabouts(offer), offer.description)
        for offer in offers()
    ]
    print(_table(("model", "", "weights", "about"), rows))
    return PASSED


def _whereabouts(offer: Offer) -> str:
    location = locate(offer)
    if location is not None:
        is_there = location.gguf or (location.folder / CONFIG_FILE).is_file()
        return "on disk" if is_there else f"folder without {CONFIG_FILE}"
    size = "" if offer.download_bytes is None else f", {offer.download_bytes / 1e6:.0f} MB to download"
    return f"not on disk{size}"


def _download(name: str) -> int:
    from tqdm import tqdm  # type: ignore[import-untyped]

    from attnviz.model.download import download_model

    with tqdm(desc=name, unit="B", unit_scale=True, file=sys.stderr, delay=0.1) as bar:

        def show(n_byte: int, n_total: int) -> None:
            bar.total = n_total
            bar.update(n_byte - bar.n)

        folder = download_model(name, on_progress=show)
    print(folder)
    return PASSED


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest entry, two spaces between them."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
