"""Whether one head finds what a pronoun refers to, or a grammatical relation: the best head compared with the best fixed rule.

    python -m benchmarks.coreference --gap gap-development.tsv --winogender all_sentences.tsv --treebank en_ewt-ud-dev.conllu

writes the tables of docs/corpus.md.

The best of a model's many heads is also lucky, so it is chosen on one half of the data and measured on the other, and
so are the fixed rules that it is compared with. Intervals are those of a Poisson bootstrap over passages, occupations
or sentences, whichever belong together.

Data, which is not part of attnviz: GAP (Webster et al. 2018, https://github.com/google-research-datasets/gap-coreference),
Winogender schemas (Rudinger et al. 2018, https://github.com/rudinger/winogender-schemas), any treebank in CoNLL-U.
"""

import argparse
import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

import attnviz
from attnviz.corpus.columns import DIRECTIONS
from attnviz.corpus.labels import Labels, read_conllu
from attnviz.corpus.measuring import measured
from attnviz.corpus.naming import FEWEST_WORDS, RELATIONS
from attnviz.corpus.sums import text_hash
from attnviz.corpus.tally import FARTHEST
from attnviz.figures.numbers import share_text
from attnviz.model.batch import batches
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from attnviz.records import Head, Tokens

DOCS = Path(__file__).parents[1] / "docs" / "corpus.md"
START, END = "<!-- accuracies: benchmarks.coreference -->", "<!-- end of accuracies -->"
BUNDLED = Path(attnviz.__file__).parent / "corpus" / "sentences.conllu"
LONGEST = 512
"""Most tokens of a passage; all of GAP's have fewer."""
PRONOUNS = re.compile(r"\b(?:he|she|they|him|her|them|his|their|hers|theirs)\b", re.IGNORECASE)
N_RELATION = 8
"""Relations in the table: those with the most words."""

N_REPLICATE = 200
"""Replicates of the bootstrap: the ends of an interval then have a standard error of about a tenth of its length."""
INTERVAL = (0.025, 0.975)
"""Quantiles of the replicates: an interval of 95%."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """A pronoun, and two candidates that it could refer to."""

    text: str
    group: str
    """Texts of one group are in one half of the data, and count together in a draw of the bootstrap."""
    pronoun: Span
    right: Span
    """Characters of what the pronoun refers to."""
    wrong: Span

    @property
    def are_before(self) -> bool:
        """Whether both come before the pronoun, where a decoder can see them."""
        return max(self.right, self.wrong) < self.pronoun

    @property
    def up_to_last(self) -> str:
        """The text up to the last of the three: what comes after it changes nothing for a decoder."""
        return self.text[: max(self.pronoun[1], self.right[1], self.wrong[1])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """How often each head, and each fixed rule, is right; a row for each group of examples."""

    name: str
    groups: tuple[str, ...]
    n: Float[np.ndarray, " group"]
    """Number of examples."""
    heads: Float[np.ndarray, "group head direction"]
    """Number of examples in which the head is right."""
    rules: Mapping[str, Float[np.ndarray, " group"]]
    """Number of examples in which each rule is right; rules use no weights."""
    chance: Float[np.ndarray, " group"]
    """Sum over the examples of the share of the candidates that is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """A share of the held-out examples with its 95% interval."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{share_text(self.share)} ({share_text(self.low)} to {share_text(self.high)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The head and the rule that were best on one half of the data, measured on the other half."""

    task: str
    model: str
    n: int
    """Held-out examples."""
    head: Head
    direction: str
    chosen: float
    """The head's share on the half that it was chosen on."""
    of_head: Accuracy
    rule: str
    of_rule: Accuracy
    beyond: Accuracy
    """The head's share minus the rule's, over the same examples."""
    chance: float
    median: float
    """Median share of all heads, each in its better direction on the first half."""


def gap(path: Path) -> list[Mentions]:
    """The passages of GAP whose pronoun refers to one of the two names."""
    examples = []
    with path.open(encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE):
            spans = {
                name: (int(row[f"{name}-offset"]), int(row[f"{name}-offset"]) + len(row[name]))
                for name in ("Pronoun", "A", "B")
            }
            is_a, is_b = (row[f"{name}-coref"].upper() == "TRUE" for name in ("A", "B"))
            if is_a != is_b:
                right, wrong = ("A", "B") if is_a else ("B", "A")
                examples.append(
                    Mentions(
                        text=row["Text"],
                        group=row["URL"],
                        pronoun=spans["Pronoun"],
                        right=spans[right],
                        wrong=spans[wrong],
                    )
                )
    return examples


def winogender(path: Path) -> list[Mentions]:
    """The sentences of the Winogender schemas, each with an occupation, a participant and a pronoun."""
    examples = []
    with path.open(encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened, delimiter="\t"):
            occupation, participant, answer, *_ = row["sentid"].split(".")
            text = row["sentence"]
            spans = [_span(rf"\b{re.escape(word)}\b", text) for word in (occupation, participant)]
            right, wrong = spans if answer == "0" else reversed(spans)
            pronoun = PRONOUNS.search(text)
            assert pronoun is not None, text
            examples.append(
                Mentions(text=text, group=occupation, pronoun=pronoun.span(), right=right, wrong=wrong)
            )
    return examples


def _span(pattern: str, text: str) -> Span:
    match = re.search(pattern, text, re.IGNORECASE)
    assert match is not None, (pattern, text)
    return match.span()


def is_right(
    weights: Float[np.ndarray, "head query key"], tokens: Tokens, mentions: Mentions
) -> Bool[np.ndarray, "head direction"]:
    """Whether each head links the pronoun with what it refers to more than with the other candidate, in both `DIRECTIONS`.

    Rows of several tokens are averaged and columns summed, as in `attnviz.corpus.measuring.Words`. A head that sees neither is not right.
    """
    spans = mentions.pronoun, mentions.right, mentions.wrong
    words = Labels(spans=np.array(spans), heads=np.full(3, -1), relations=("",) * 3, parts=("",) * 3).word_of(
        tokens
    )
    pronoun, right, wrong = (np.flatnonzero(words == word) for word in range(3))
    return np.stack(
        [
            _linked(weights, pronoun, right) > _linked(weights, pronoun, wrong),
            _linked(weights, right, pronoun) > _linked(weights, wrong, pronoun),
        ],
        axis=-1,
    )


def _linked(
    weights: Float[np.ndarray, "head query key"],
    query: Int[np.ndarray, " token"],
    key: Int[np.ndarray, " token"],
) -> Float[np.ndarray, " head"]:
    linked: np.ndarray = weights[:, query][:, :, key].sum(axis=2).mean(axis=1)
    return linked


def coreference(
    model: attnviz.Model, examples: Sequence[Mentions]
) -> list[Bool[np.ndarray, "head direction"]]:
    """For each example, which heads of a model link the pronoun with what it refers to."""
    is_decoder = "decoder" in model.probe().kinds
    texts = [example.up_to_last if is_decoder else example.text for example in examples]
    read = [model.read(text, max_tokens=LONGEST) for text in texts]
    right: dict[int, np.ndarray] = {}
    for batch in batches([len(tokens) for tokens, _ in read]):
        for number, trace in zip(batch, model.trace_texts([read[number] for number in batch]), strict=True):
            right[number] = np.concatenate(
                [
                    is_right(trace.layer_weights(layer), trace.tokens, examples[number])
                    for layer in range(trace.n_layers())
                ]
            )
    return [right[number] for number in range(len(examples))]


def task_of(
    name: str, examples: Sequence[Mentions], right: Sequence[Bool[np.ndarray, "head direction"]]
) -> Task:
    """How often each head is right, and each of the rules that use nothing but the places of the candidates.

    Args:
        right: see `coreference`.
    """
    nearer = [
        abs(example.right[0] - example.pronoun[0]) < abs(example.wrong[0] - example.pronoun[0])
        for example in examples
    ]
    first = [example.right < example.wrong for example in examples]
    rules = {
        "the nearer": nearer,
        "the farther": [not is_nearer for is_nearer in nearer],
        "the first": first,
        "the last": [not is_first for is_first in first],
        "the longer": [_length(example.right) > _length(example.wrong) for example in examples],
    }
    return _task(
        name,
        [example.group for example in examples],
        np.ones(len(examples)),
        np.stack(right),
        {rule: np.array(of_rule) for rule, of_rule in rules.items()},
        np.full(len(examples), 0.5),
    )


def _length(span: Span) -> int:
    return span[1] - span[0]


def relations(model: attnviz.Model, texts: Sequence[tuple[str, Labels]]) -> Iterator[Task]:
    """How often each head of a model finds each of the most frequent relations of labelled sentences; see `attnviz.corpus.measuring.Words`."""
    read = [model.read(text, max_tokens=LONGEST) for text, _ in texts]
    numbers = {}
    for batch in batches([len(tokens) for tokens, _ in read]):
        of_batch = measured(
            model, [read[number] for number in batch], ("entropy",), [texts[number][1] for number in batch]
        )
        numbers |= dict(zip(batch, of_batch, strict=True))
    n_words: dict[str, int] = defaultdict(int)
    for of_text in numbers.values():
        for relation, count in of_text.n_words.items():
            n_words[relation] += count
    for relation in sorted(n_words, key=lambda relation: (-n_words[relation], relation))[:N_RELATION]:
        has = [number for number in range(len(texts)) if relation in numbers[number].n_words]
        offsets = [_offsets(texts[number][1], relation) for number in has]
        n = np.array([numbers[number].n_words[relation] for number in has], dtype=np.float64)
        yield _task(
            f"{' and its '.join(RELATIONS.get(relation, ('word', 'parent')))} ({relation})",
            [texts[number][0] for number in has],
            n,
            np.stack([numbers[number].n_found[relation] for number in has]),
            {
                f"the word at {offset:+d}": np.array([of_text.count(offset) for of_text in offsets])
                for offset in range(-FARTHEST, FARTHEST + 1)
                if offset
            },
            n / np.array([max(1, len(texts[number][1].heads) - 1) for number in has]),
        )


def _offsets(labels: Labels, relation: str) -> list[int]:
    """For each word of a relation, how many words away the word is that it depends on."""
    return [
        head - word
        for word, (head, name) in enumerate(zip(labels.heads.tolist(), labels.relations, strict=True))
        if head >= 0 and name == relation
    ]


def _task(
    name: str,
    groups: Sequence[str],
    n: np.ndarray,
    heads: np.ndarray,
    rules: Mapping[str, np.ndarray],
    chance: np.ndarray,
) -> Task:
    """Sums over the examples of each group."""
    names, which = np.unique(groups, return_inverse=True)

    def summed(numbers: np.ndarray) -> np.ndarray:
        total = np.zeros((len(names), *numbers.shape[1:]))
        np.add.at(total, which, numbers)
        return total

    return Task(
        name=name,
        groups=tuple(names.tolist()),
        n=summed(n),
        heads=summed(heads),
        rules={rule: summed(of_rule) for rule, of_rule in rules.items()},
        chance=summed(chance),
    )


def is_development(group: str) -> bool:
    """Whether a group belongs to the half on which heads and rules are chosen, by its hash."""
    return text_hash(group) % 2 == 0


def draws(groups: Sequence[str]) -> np.ndarray:
    """[replicate, group]: how often each group counts in each replicate; in the first row, which is no replicate, once.

    Source: Hanley and MacGibbon 2006, "Creating non-parametric bootstrap samples using Poisson frequencies", Computer Methods and
    Programs in Biomedicine 83; a group's draws come from its own hash.
    """
    drawn = [np.random.default_rng(text_hash(group)).poisson(1.0, N_REPLICATE) for group in groups]
    return np.vstack([np.ones(len(groups)), np.transpose(drawn)])


def result(task: Task, model: attnviz.Model) -> Result:
    """The head and the rule with the largest share of one half, measured on the other."""
    chosen_on = np.array([is_development(group) for group in task.groups])
    held_out = ~chosen_on
    shares = task.heads[chosen_on].sum(axis=0) / task.n[chosen_on].sum()  # [head, direction]
    head, direction = np.unravel_index(shares.argmax(), shares.shape)
    rule = max(task.rules, key=lambda name: float(task.rules[name][chosen_on].sum()))
    times = draws([group for group in task.groups if not is_development(group)])
    n = task.n[held_out]

    def accuracy(right: np.ndarray) -> Accuracy:
        drawn = (times @ right[held_out]) / (times @ n)
        low, high = np.quantile(drawn[1:], INTERVAL)
        return Accuracy(share=float(drawn[0]), low=float(low), high=float(high))

    of_head = task.heads[:, head, direction]
    better = shares.argmax(axis=1)
    each = task.heads[held_out].sum(axis=0)[np.arange(len(better)), better] / n.sum()
    probe = model.probe()
    return Result(
        task=task.name,
        model=model.name,
        n=int(n.sum()),
        head=probe.heads()[head],
        direction=DIRECTIONS[direction],
        chosen=float(shares[head, direction]),
        of_head=accuracy(of_head),
        rule=rule,
        of_rule=accuracy(task.rules[rule]),
        beyond=accuracy(of_head - task.rules[rule]),
        chance=float(task.chance[held_out].sum() / n.sum()),
        median=float(np.median(each)),
    )


def table(results: Iterable[Result]) -> Iterator[str]:
    """Rows of Markdown."""
    yield "| what | model | examples | chance | best fixed rule | best head | beyond the rule | median head |"
    yield "|---|---|---|---|---|---|---|---|"
    for result in results:
        yield (
            f"| {result.task} | {result.model} | {result.n:,} | {share_text(result.chance)} | {result.rule}: {result.of_rule} | "
            f"{result.head.short}, {result.direction}: {result.of_head} | {result.beyond} | {share_text(result.median)} |"
        )


def main() -> None:
    """Writes the tables into docs/corpus.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gap", type=Path, metavar="TSV")
    parser.add_argument("--winogender", type=Path, metavar="TSV")
    parser.add_argument("--treebank", type=Path, metavar="CONLLU", default=BUNDLED)
    given = parser.parse_args()
    passages = gap(given.gap) if given.gap else []
    schemas = winogender(given.winogender) if given.winogender else []
    with given.treebank.open(encoding="utf-8") as opened:
        labelled = [(text, labels) for _, text, labels in read_conllu(opened) if isinstance(labels, Labels)]
    of_pronouns, of_relations = [], []
    for name in (EMBEDDED, SMOLLM2):
        model = attnviz.load_model(name)
        right = coreference(model, passages)
        before = [number for number, passage in enumerate(passages) if passage.are_before]
        tasks = {
            "GAP": (passages, right),
            "GAP, both names before the pronoun": (
                [passages[number] for number in before],
                [right[number] for number in before],
            ),
            "Winogender": (schemas, coreference(model, schemas)),
        }
        of_pronouns += [
            result(task_of(task, examples, rows_of_task), model)
            for task, (examples, rows_of_task) in tasks.items()
            if examples
        ]
        of_relations += [
            result(task, model)
            for task in relations(model, labelled)
            if task.n[[is_development(group) for group in task.groups]].sum() >= FEWEST_WORDS
        ]
    write(of_pronouns, of_relations)


def write(of_pronouns: list[Result], of_relations: list[Result]) -> None:
    """Writes the tables between the marks, with the rows of a task together."""
    of_pronouns = sorted(of_pronouns, key=lambda row: row.task)
    lines = [*table(of_pronouns), "", *table(sorted(of_relations, key=lambda row: (-row.n, row.task)))]
    text = DOCS.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(START)}.*{re.escape(END)}", re.DOTALL)
    DOCS.write_text(pattern.sub(lambda _: "\n".join([START, *lines, END]), text), encoding="utf-8")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
