"""The `attnviz` command: verify a text, list the models, download one.

One concept: the command line. torch and transformers are imported when a model is loaded, so that
``--help`` answers at once.
"""

import argparse
import sys
from collections.abc import Sequence

from attnviz import __version__
from attnviz.catalogue import CONFIG_FILE, Offer, default_model, locate, offers
from attnviz.errors import AttnvizError
from attnviz.records import VerificationReport

PASSED, FAILED, ERROR, INTERRUPTED = 0, 1, 2, 130
"""Exit codes; 130 is the shell's own for Ctrl-C."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command with these arguments (those of the process when None).

    0 when all is well, 1 when a verification does not pass, 2 for an error, which is one line on stderr.

    Raises:
        SystemExit: argparse's own way out of ``--help``, ``--version`` and arguments it does not know.
    """
    arguments = _parser().parse_args(argv)
    try:
        match arguments.command:
            case "verify":
                return _verify(arguments.text, arguments.second, arguments.model)
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
    parser = argparse.ArgumentParser(prog="attnviz", description="The attention of a BERT, checked.")
    parser.add_argument("--version", action="version", version=f"attnviz {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    verify = commands.add_parser("verify", help="lay attnviz's attention for a text beside the model's own")
    verify.add_argument("text", help="what the model reads")
    verify.add_argument("--second", metavar="TEXT", help="second sentence of a pair")
    verify.add_argument(
        "--model", help="a name that `attnviz models` lists, a Hub id, or a checkpoint folder"
    )

    commands.add_parser("models", help="list the models on offer, and which of them are on this disk")

    download = commands.add_parser("download", help="download a model from the Hub")
    download.add_argument("model", help="a name that `attnviz models` lists, or a Hub id")
    return parser


def _verify(text: str, second: str | None, name: str | None) -> int:
    from attnviz.models import load_model
    from attnviz.verification import verify

    model = load_model(name)
    trace = model.trace(text, second)
    report = verify(model, trace)
    source = report.provenance
    print(f"{source.model} ({source.revision}), {source.dtype}, {len(trace.tokens)} tokens")
    print()
    print(_ladder(report))
    print()
    print(_by_layer(report))
    print()
    print("passed" if report.passed else "FAILED")
    return PASSED if report.passed else FAILED


def _ladder(report: VerificationReport) -> str:
    rows = [
        (rung.name, f"{rung.difference:.1e}", f"{rung.tolerance:.1e}", "yes" if rung.passed else "NO")
        for rung in report.rungs
    ]
    return _table(("compared", "largest difference", "tolerance", "passed"), rows)


def _by_layer(report: VerificationReport) -> str:
    rows = [
        (kind, str(layer), f"{heads.max():.1e}", str(heads.argmax()))
        for kind, errors in report.weight_errors.items()
        for layer, heads in enumerate(errors)
    ]
    return _table(("attention", "layer", "largest weight difference", "in head"), rows)


def _list_models() -> int:
    default = default_model()
    rows = [
        (one.name, "default" if one.name == default else "", _whereabouts(one), one.description)
        for one in offers()
    ]
    print(_table(("model", "", "weights", "about"), rows))
    return PASSED


def _whereabouts(offer: Offer) -> str:
    location = locate(offer)
    if location is not None:
        return "on disk" if (location.folder / CONFIG_FILE).is_file() else f"folder without {CONFIG_FILE}"
    size = "" if offer.download_bytes is None else f", {offer.download_bytes / 1e6:.0f} MB to download"
    return f"not on disk{size}"


def _download(name: str) -> int:
    from tqdm import tqdm  # type: ignore[import-untyped]

    from attnviz.download import download_model

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
