"""The labels of the bundled sentences, and the profiles of both bundled models over them; written into attnviz/corpus (`make profiles`).

The labels are spaCy's: they are made again if spaCy and its small English model are installed, and otherwise kept as they are.
"""

import shutil
import tempfile
from pathlib import Path

from attnviz.corpus.labels import Labels, spacy_labels
from attnviz.corpus.pipeline import profile_corpus
from attnviz.maps.collection import bundled, sentences
from attnviz.model.catalogue import EMBEDDED, SMOLLM2

FOLDER = Path(__file__).parents[1] / "attnviz" / "corpus"
LABELLED = FOLDER / "sentences.conllu"
PIPELINE = "en_core_web_sm"


def conllu(text: str, labels: Labels) -> str:
    """A sentence as CoNLL-U."""
    lines = [f"# text = {text}"]
    for number, ((first, stop), head, relation, part) in enumerate(
        zip(labels.spans.tolist(), labels.heads.tolist(), labels.relations, labels.parts, strict=True), 1
    ):
        followed = number < len(labels.heads) and labels.spans[number, 0] == stop
        columns = [str(number), text[first:stop], "_", part, "_", "_", str(head + 1), relation, "_"]
        lines.append("\t".join([*columns, "SpaceAfter=No" if followed or stop == len(text) else "_"]))
    return "\n".join(lines) + "\n\n"


def label() -> None:
    """Writes the labels of the bundled sentences, if spaCy is installed."""
    try:
        import spacy

        pipeline = spacy.load(PIPELINE)
    except (ImportError, OSError):
        return
    texts = [" ".join(text.split()) for _, text in sentences(bundled())]
    made = f"# Labels of spaCy {spacy.__version__}, {PIPELINE} {pipeline.meta['version']} ({pipeline.meta['license']}).\n"
    LABELLED.write_text(made + "".join(map(conllu, texts, spacy_labels(pipeline, texts))), encoding="utf-8")


def main() -> None:
    """Writes everything."""
    label()
    for model in (EMBEDDED, SMOLLM2):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, model)
            profile_corpus([str(LABELLED)], model, out)
            kept = FOLDER / "bundled" / model
            kept.mkdir(parents=True, exist_ok=True)
            for file in ("heads.parquet", "examples.parquet"):
                shutil.copy(out / file, kept / file)


if __name__ == "__main__":
    main()
