"""A folder that contradicts itself is refused, or its verdict says so; what published checkpoints have is neither."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import transformers as tf
from tokenizers import Tokenizer, models, pre_tokenizers

import attnviz
from attnviz.errors import ModelNotAvailableError
from attnviz.model.agreement import sentencepiece_pieces
from attnviz.records import FILE
from tests import tiny

PIECES = ["<unk>", "\u2581the", "door", "\u2581"]


@pytest.fixture
def saved(tmp_path) -> Callable[[str], Path]:
    """The folder of a family's tiny checkpoint, whose table has as many rows as its tokenizer has tokens."""

    def save(name: str) -> Path:
        folder = tiny.save(tiny.TEXT_FAMILIES[name], tmp_path / "mine")
        n_token = len(tf.AutoTokenizer.from_pretrained(folder))
        network = tf.AutoModel.from_pretrained(folder)
        network.resize_token_embeddings(n_token)
        network.save_pretrained(folder)
        return folder

    return save


def edit(path: Path, change: Callable[[dict], object]) -> None:
    settings = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    change(settings)
    path.write_text(json.dumps(settings), encoding="utf-8")


def refusal(folder: Path) -> str:
    with pytest.raises(ModelNotAvailableError) as caught:
        attnviz.load_model(str(folder))
    message = str(caught.value)
    assert " of mine contradict each other: " in message and message.endswith(", or select another model.")
    assert str(folder) not in message and "\n" not in message
    return message


def remarks(folder: Path) -> str:
    """What the verdict adds to the account of the file's tensors, for a model whose numbers pass."""
    model = attnviz.load_model(str(folder))
    report = attnviz.verify(model, model.trace("the door"))
    assert report.passed
    reason = report.check(FILE).reason
    assert reason.startswith(str(model.weights.account))
    return reason.removeprefix(str(model.weights.account)).strip()


def words(folder: Path) -> dict[str, int]:
    return tf.AutoTokenizer.from_pretrained(folder).get_vocab()


def write_words(folder: Path, change: Callable[[list[str]], list[str]]) -> None:
    """A vocab.txt of the tokenizer's entries after a change, and tokenizer.json as it is."""
    of_tokenizer = words(folder)
    listed = change(sorted(of_tokenizer, key=of_tokenizer.get))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in listed), encoding="utf-8")


def exchanged(listed: list[str], *names: str) -> list[str]:
    other = dict(zip(names, reversed(names), strict=True))
    return [other.get(word, word) for word in listed]


def write_many_words(folder: Path, change: Callable[[list[str]], list[str]]) -> None:
    """A tokenizer with 1,000 words more, each with a row, and a vocab.txt that a change may make another."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    for number in range(1000):
        vocabulary[f"word{number}"] = len(vocabulary)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    network = tf.AutoModel.from_pretrained(folder)
    network.resize_token_embeddings(len(vocabulary))
    network.save_pretrained(folder)
    write_words(folder, change)


def with_tokenizer_of(other: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for path in folder.glob("tokenizer*"):
            path.unlink()
        tiny.tokenizer(other).save_pretrained(folder)

    return make


def settings(**changes: object) -> Callable[[Path], None]:
    return lambda folder: edit(folder / "config.json", lambda given: given.update(changes))


def file_of(name: str, **changes: object) -> Callable[[Path], None]:
    return lambda folder: edit(folder / name, lambda given: given.update(changes))


def piece(text: str) -> bytes:
    """A piece of SentencePiece's, with a score: field 1 of the model, which holds fields 1 and 2."""
    inner = b"\x0a" + bytes([len(text.encode())]) + text.encode() + b"\x15\x00\x00\x80\xbf"
    return b"\x0a" + bytes([len(inner)]) + inner


def write_pieces(*pieces: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "spiece.model").write_bytes(
        b"".join(map(piece, pieces)) + b"\x12\x02\x08\x01"
    )


def write_template(ids: dict[str, int], first: str = "[CLS]", last: str = "[SEP]") -> Callable[[Path], None]:
    """Another template in tokenizer.json."""

    def make(folder: Path) -> None:
        def change(given):
            single = [{"SpecialToken": {"id": first, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
            single += [{"SpecialToken": {"id": last, "type_id": 0}}]
            tokens = {name: {"id": name, "ids": [number], "tokens": [name]} for name, number in ids.items()}
            given["post_processor"] |= {"single": single, "special_tokens": tokens}

        edit(folder / "tokenizer.json", change)

    return make


def add_tokens(n_token: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens([f"more{number}" for number in range(n_token)])
        tokenizer.save_pretrained(folder)

    return make


def of_many_words(folder: Path) -> None:
    """Another vocabulary, whose small ids have rows."""
    vocabulary = {word: number for number, word in enumerate(["[UNK]", "the", "door", *map(str, range(500))])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    for path in folder.glob("tokenizer*"):
        path.unlink()
    tf.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]").save_pretrained(folder)


REFUSED = {
    "roberta's class for bert": ("bert", settings(architectures=["RobertaForMaskedLM"]), "bert and RobertaForMaskedLM"),
    "bert's class for roberta": ("roberta", settings(architectures=["BertModel"]), "roberta and BertModel"),
    "the second of two classes": ("bert", settings(architectures=["BertModel", "GPT2LMHeadModel"]), "and GPT2LMHead"),
    "a TensorFlow class": ("bert", settings(architectures=["TFAlbertForMaskedLM"]), "bert and TFAlbertForMaskedLM"),
    "llama as mistral": ("mistral", settings(architectures=["LlamaForCausalLM"]), "mistral and LlamaForCausalLM"),
    "model_type as another family": ("bert", settings(model_type="electra", architectures=["BertModel"]), "electra and Bert"),
    "cls and sep exchanged": ("bert", settings(cls_token_id=3, sep_token_id=2), "cls_token_id is 3 in the former and 2 "),
    "bos and eos exchanged, of cls and sep": ("bert", settings(bos_token_id=3, eos_token_id=2), "bos_token_id is 3 in"),
    "bos and eos exchanged": ("roberta", settings(bos_token_id=2, eos_token_id=0), "bos_token_id is 2 in the former and 0 "),
    "pad and mask exchanged": ("roberta", settings(pad_token_id=4, mask_token_id=1), "pad_token_id is 4 in the former and 1 "),
    "pad and unk exchanged": ("t5", settings(pad_token_id=1, unk_token_id=0), "pad_token_id is 1"),
    "another mask": ("eurobert", settings(mask_token_id=7), "mask_token_id is 7 in the former and 4 in the latter"),
    "another sep": ("modernbert", settings(sep_token_id=9), "sep_token_id is 9"),
    "a larger vocabulary": ("bert", of_many_words, "tokens have no row, such as 7"),
    "another tokenizer": ("bert", with_tokenizer_of("bytes"), "tokens have no row"),
    "words of another vocabulary": ("bert", lambda folder: write_words(folder, lambda listed: listed[::-1]), "entries differ"),
    "fewer words": ("bert", lambda folder: write_words(folder, lambda listed: listed[:60]), "entries differ, such as"),
    "special words exchanged": (
        "bert",
        lambda folder: write_many_words(folder, lambda listed: exchanged(listed, "[CLS]", "[SEP]")),
        "2 entries differ, such as [CLS] (3 and 2)",
    ),
    "a table of words of another vocabulary": (
        "gpt2",
        lambda folder: edit(folder / "vocab.json", lambda given: given.update({"a": 0, "b": 1})),
        "entries differ",
    ),
    "other merges": ("byte pairs", lambda folder: (folder / "merges.txt").write_text("#version: 0.2\na b\nt h\n"), "merges differ"),
    "merges in another order": (
        "byte pairs",
        lambda folder: (folder / "merges.txt").write_text("th e\nt h\n\u0120 the\n\u0120 \u00d0\n\u00f0 \u0141\n\u010a \u010a\n"),
        "2 merges differ",
    ),
    "other pieces": ("t5", write_pieces("<unk>", "\u2581Haus", "T\u00fcr"), "spiece.model has 2 pieces"),
    "an added token with another id": (
        "bert",
        file_of("tokenizer_config.json", added_tokens_decoder={"9": {"content": "[CLS]", "special": True}}),
        "[CLS] (9 and 2)",
    ),
    "old added tokens": ("bert", file_of("added_tokens.json", **{"[MASK]": 20}), "[MASK] (20 and 4)"),
    "a template of other ids": ("bert", write_template({"[CLS]": 3, "[SEP]": 2}), "[CLS] has the id 3 there and 2"),
    "cls and sep exchanged in the tokenizer's settings": (
        "bert",
        file_of("tokenizer_config.json", tokenizer_class="BertTokenizer", cls_token="[SEP]", sep_token="[CLS]"),
        "a text stands within [CLS] and [SEP] there, and is read within [SEP] and [CLS]",
    ),
    "a template in another order": ("bert", write_template({"[CLS]": 2, "[SEP]": 3}, "[SEP]", "[CLS]"), "[SEP]"),
}  # fmt: skip


def checkpoint_of(family: str, saved: Callable[[str], Path]) -> Path:
    if family != "byte pairs":
        return saved(family)
    folder = saved("gpt2")
    with_tokenizer_of(family)(folder)
    network = tf.AutoModel.from_pretrained(folder)
    network.resize_token_embeddings(len(words(folder)))
    network.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("family", "make", "fact"), REFUSED.values(), ids=REFUSED)
def test_is_refused(family, make, fact, saved):
    folder = checkpoint_of(family, saved)
    make(folder)
    assert fact in refusal(folder)


TOLD = {
    "a twin's class": ("roberta", settings(architectures=["CamembertModel"], bos_token_id=0, eos_token_id=2), "roberta and CamembertModel"),
    "a class of the checkpoint's own": ("bert", settings(architectures=["MyBert"]), "MyBert is none of them, and the network is shown as BertModel"),
    "another end": ("t5", settings(eos_token_id=7), "eos_token_id is 7 in the former and 3 in the latter"),
    "other ends": ("t5", settings(eos_token_id=[7, 8]), "eos_token_id is one of [7, 8] in the former and 3"),
    "another padding": ("t5", settings(pad_token_id=5), "pad_token_id is 5"),
    "labels": (
        "bert",
        settings(id2label={"0": "GOOD", "1": "BAD"}, label2id={"GOOD": 1, "BAD": 0}),
        "id2label and label2id: GOOD is 0 and 1; the former is shown.",
    ),
    "a few tokens without a row": ("bert", add_tokens(3), "3 of the 78 tokens have no row, such as more0 with the id 75"),
    "a few other words": (
        "bert",
        lambda folder: write_many_words(folder, lambda listed: exchanged(listed, "word3", "word5")),
        "vocab.txt and tokenizer.json: 2 entries differ, such as word3 (",
    ),
    "special tokens": (
        "bert",
        file_of("special_tokens_map.json", sep_token={"content": "."}),
        "special_tokens_map.json and tokenizer_config.json: sep_token is . in the former and [SEP] in the latter; . is read.",
    ),
    "chat templates": (
        "bert",
        lambda folder: (
            file_of("tokenizer_config.json", chat_template="a")(folder),
            (folder / "chat_template.jinja").write_text("b"),
        ),
        "two chat templates",
    ),
    "weights beside weights": (
        "bert",
        lambda folder: (folder / "pytorch_model.bin").write_bytes(b"other"),
        "The weights and files beside them: nothing is read of pytorch_model.bin.",
    ),
    "an adapter in a folder": (
        "bert",
        lambda folder: (folder / "en" / "v2").mkdir(parents=True) or (folder / "en/v2/adapter_model.bin").write_bytes(b"x"),
        "The weights and adapters: the adapter in en/v2 is not applied.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("family", "make", "fact"), TOLD.values(), ids=TOLD)
def test_is_told_in_the_verdict(family, make, fact, saved):
    folder = saved(family)
    make(folder)
    assert fact in remarks(folder)


def test_a_table_with_many_rows_for_no_token_is_told(tmp_path):
    folder = tiny.save(tiny.TEXT_FAMILIES["bert"], tmp_path / "mine")
    assert "the last 225 of the 300 rows belong to no token" in remarks(folder)


PUBLISHED = {
    "nothing": ("bert", lambda folder: None),
    "no class": ("bert", settings(architectures=None)),
    "a head for another task": ("bert", settings(architectures=["BertForTokenClassification"])),
    "a class that TensorFlow wrote": ("bert", settings(architectures=["TFBertModel"])),
    "several ends, one of them the chat's": ("t5", settings(eos_token_id=[3, 9])),
    "roles that the tokenizer has no token for": ("gpt2", settings(bos_token_id=11, eos_token_id=12, pad_token_id=0)),
    "no padding, as -1": ("t5", settings(pad_token_id=-1)),
    "a copy of the words": ("bert", lambda folder: write_words(folder, list)),
    "a dictionary of fairseq's": ("bert", lambda folder: write_words(folder, lambda listed: [f"{word} 17" for word in listed])),
    "pieces that a conversion keeps": ("t5", write_pieces("<unk>", "<pad>", "the", "door", "a", "it", "on", "i", "was", "sat", "mat", "\u2581x")),
    "what is no SentencePiece model": ("bert", lambda folder: (folder / "tokenizer.model").write_bytes(b"\xff" * 9)),
    "no tokenizer.json": ("bert", lambda folder: shutil.copy(folder / "tokenizer.json", folder / "old.json")),
    "sparse settings": ("bert", file_of("special_tokens_map.json", additional_special_tokens=["[CLS]"])),
}  # fmt: skip


@pytest.mark.parametrize(("family", "make"), PUBLISHED.values(), ids=PUBLISHED)
def test_what_is_published_is_neither_refused_nor_told(family, make, saved):
    folder = saved(family)
    make(folder)
    assert remarks(folder) == ""


def test_a_table_padded_to_a_multiple_of_eight(saved):
    folder = saved("bert")
    network = tf.AutoModel.from_pretrained(folder)
    network.resize_token_embeddings(len(words(folder)), pad_to_multiple_of=8)
    network.save_pretrained(folder)
    assert remarks(folder) == ""


def test_the_bundled_encoder_agrees_with_itself(embedded):
    assert embedded.weights.remarks == ()


def test_pieces_are_read_from_their_bytes():
    content = b"".join(map(piece, PIECES)) + b"\x12\x02\x08\x01"
    assert sentencepiece_pieces(content) == PIECES
    assert sentencepiece_pieces(content[:-6]) == []
    assert sentencepiece_pieces(b"no model") == []
