"""Finding tokens among a million: usearch, numkong, numpy and LanceDB over hidden states and queries of all-MiniLM-L6-v2 (`make tokens`).

Texts are the docstrings of installed packages: real English, available wherever attnviz is. LanceDB takes part if it is installed.
"""

import argparse
import ast
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from sysconfig import get_paths

import numpy as np

from attnviz.corpus.indexing import build_graph
from attnviz.corpus.token_index import N_NEAREST, open_graph, scan

PACKAGES = ("scipy", "sklearn", "pandas", "numpy", "transformers", "torch")
N_TOKEN = 1_000_000
N_SEARCHED = 100
LAYER = 1


def prose() -> Iterator[str]:
    """Paragraphs of docstrings that are mostly letters, each once."""
    seen = set()
    for package in PACKAGES:
        for file in sorted((Path(get_paths()["purelib"]) / package).rglob("*.py")):
            try:
                nodes = ast.walk(ast.parse(file.read_text("utf-8")))
            except (SyntaxError, UnicodeDecodeError):
                continue
            for node in nodes:
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    for part in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                        text = " ".join(part.split())
                        n_letter = sum(character.isalpha() or character == " " for character in text)
                        if (
                            len(text) >= 60
                            and ">>>" not in text
                            and n_letter > 0.85 * len(text)
                            and text not in seen
                        ):
                            seen.add(text)
                            yield text[:1500]


def vectors(n_token: int) -> dict[str, np.ndarray]:
    """Hidden states and the first head's queries of this many tokens, scaled to length 1, in float16."""
    import attnviz
    from attnviz.corpus.contexts import contexts
    from attnviz.corpus.token_index import unit
    from attnviz.model.batch import batches
    from attnviz.model.catalogue import EMBEDDED

    model = attnviz.load_model(EMBEDDED)
    made: dict[str, list[np.ndarray]] = {"hidden": [], "query": []}
    n_made, texts = 0, prose()
    while n_made < n_token:
        read = [
            model.read(text, max_tokens=512, cut=True) for _, text in zip(range(512), texts, strict=False)
        ]
        if not read:
            break
        for batch in batches([len(tokens) for tokens, _ in read]):
            some = [read[number] for number in batch]
            for (tokens, _), of_text in zip(some, contexts(model, some, LAYER), strict=True):
                own = ~tokens.is_added
                made["hidden"].append(unit(of_text.hidden[own]))
                made["query"].append(unit(of_text.query[0, own]))
                n_made += int(own.sum())
    return {name: np.concatenate(parts)[:n_token] for name, parts in made.items()}


def searched(
    name: str, kept: np.ndarray, exact: list[np.ndarray], search: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Prints how long a search takes and its recall: the share of results that are as near as the tenth exact one."""
    places = np.linspace(0, len(kept) - 1, N_SEARCHED).astype(int)
    search(kept[places[0]])
    seconds, n_near = [], 0
    for place, nearest in zip(places, exact, strict=True):
        given = kept[place].astype(np.float64)
        start = time.perf_counter()
        numbers = search(kept[place])
        seconds.append(time.perf_counter() - start)
        n_near += int((kept[numbers[:N_NEAREST]].astype(np.float64) @ given >= nearest[-1] - 1e-3).sum())
    print(
        f"  {name:34} {1000 * np.median(seconds):8.1f} ms, at most {1000 * max(seconds):8.1f} ms, recall@10 "
        f"{n_near / N_NEAREST / N_SEARCHED:.3f}",
        flush=True,
    )


def measure(name: str, kept: np.ndarray, folder: Path) -> None:
    """Prints build time, size, search time and recall of each way to search some vectors."""
    n_token, d_vector = kept.shape
    print(f"{name}: {n_token:,} x {d_vector}, {kept.nbytes / 1e6:,.0f} MB in float16", flush=True)
    places = np.linspace(0, n_token - 1, N_SEARCHED).astype(int)
    exact: list[np.ndarray] = []
    for part in np.array_split(places, 10):
        near = np.empty((0, len(part)), dtype=np.float32)
        for start in range(0, n_token, 65536):
            here = kept[start : start + 65536].astype(np.float32) @ kept[part].astype(np.float32).T
            near = np.sort(np.concatenate([near, here]), axis=0)[-N_NEAREST:]
        exact += list(near[::-1].T.astype(np.float64))

    searched("all, numkong, float16", kept, exact, lambda given: scan(kept, given[None], N_NEAREST)[0])

    def by_numpy(given: np.ndarray) -> np.ndarray:
        similarities = np.concatenate(
            [
                kept[start : start + 65536].astype(np.float32) @ given.astype(np.float32)
                for start in range(0, n_token, 65536)
            ]
        )
        return np.argsort(-similarities)[:N_NEAREST]

    searched("all, numpy, float16 as float32", kept, exact, by_numpy)
    start = time.perf_counter()
    build_graph(kept, folder / f"{name}.usearch")
    seconds = time.perf_counter() - start
    graph = open_graph(folder / f"{name}.usearch", n_token, d_vector)
    size = (folder / f"{name}.usearch").stat().st_size / 1e6
    print(f"  usearch, float16: built in {seconds:,.0f} s, {size:,.0f} MB")
    searched(
        "graph, usearch, float16",
        kept,
        exact,
        lambda given: graph.search(given, N_NEAREST).keys.astype(np.int64),
    )
    by_lance(name, kept, exact, folder)


def by_lance(name: str, kept: np.ndarray, exact: list[np.ndarray], folder: Path) -> None:
    """The same with LanceDB's two indices that support the cosine, where it is installed."""
    try:
        import lancedb
        import pyarrow as pa
    except ImportError:
        return
    column = pa.FixedSizeListArray.from_arrays(pa.array(kept.ravel()), kept.shape[1])
    table = pa.table({"number": np.arange(len(kept)), "vector": column})
    opened = lancedb.connect(folder / f"{name}.lance").create_table("tokens", table)
    for index in ("IVF_HNSW_SQ", "IVF_PQ"):
        start = time.perf_counter()
        opened.create_index(metric="cosine", index_type=index, replace=True)
        seconds = time.perf_counter() - start
        size = (
            sum(file.stat().st_size for file in (folder / f"{name}.lance").rglob("*") if file.is_file()) / 1e6
        )
        print(f"  LanceDB, {index}: built in {seconds:,.0f} s, {size:,.0f} MB with its table")

        def search(given: np.ndarray) -> np.ndarray:
            near = opened.search(given.astype(np.float32)).limit(N_NEAREST).select(["number"]).to_arrow()
            return near["number"].to_numpy()

        searched(f"LanceDB, {index}", kept, exact, search)


def main() -> None:
    """Prints everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=N_TOKEN)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, kept in vectors(arguments.tokens).items():
            measure(name, kept, Path(folder))


if __name__ == "__main__":
    main()
