"""What is put around a text: its tokens are transformers' own, and special where those are."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import processors

import attnviz
from attnviz.model.model import Model
from attnviz.model.templates import framed
from attnviz.model.tokenization import tokenize
from tests import tiny
from tests.chatting import SPECIAL, chat_tokenizer, model_with

TEXT = "the cat"


@pytest.fixture(scope="module")
def chat(tmp_path_factory) -> Model:
    return model_with(chat_tokenizer(bos_token=SPECIAL[1]), tmp_path_factory.mktemp("chat"))


def special(model: Model, name: str) -> int:
    return model.tokenizer.convert_tokens_to_ids(name)


def test_a_chat_is_what_transformers_makes_of_it(chat):
    tokens = chat.tokenize(TEXT, template="chat")
    message = [{"role": "user", "content": TEXT}]
    expected = chat.tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=True)[
        "input_ids"
    ]
    assert tokens.ids.tolist() == list(expected)
    assert (tokens.text, tokens.template) == (TEXT, "chat")
    marked = [label for label, is_special in zip(tokens.labels, tokens.is_special, strict=True) if is_special]
    assert marked == ["<|begin|>", "<|said|>", "<|begin|>", "<|said|>", "<|begin|>"]
    assert not tokens.is_added.any()  # they are the template's
    assert (tokens.word[tokens.is_special] == -1).all()
    assert "".join(tokens.pieces).endswith("<|begin|>user\nthe cat<|said|>\n<|begin|>assistant\n")


def test_a_chat_begins_once_where_the_tokenizer_adds_that_token_to_every_text():
    made = chat_tokenizer(bos_token=SPECIAL[1])
    begin = (SPECIAL[1], made.convert_tokens_to_ids(SPECIAL[1]))
    made.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL[1]} $A", special_tokens=[begin]
    )
    assert made(TEXT)["input_ids"][0] == begin[1]
    message = [{"role": "user", "content": TEXT}]
    expected = made.apply_chat_template(message, add_generation_prompt=True, return_dict=True)["input_ids"]
    assert tokenize(made, TEXT, max_tokens=None, template="chat").ids.tolist() == list(expected)


def test_the_model_reads_those_tokens(chat):
    trace = chat.trace(TEXT, template="chat")
    expected = chat.tokenizer.apply_chat_template(
        [{"role": "user", "content": TEXT}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )["input_ids"]
    with torch.inference_mode():
        states = chat.reference(input_ids=expected).last_hidden_state[0].numpy()
    np.testing.assert_allclose(trace.last_hidden_state, states, rtol=1e-4, atol=1e-5)
    assert attnviz.verify(chat, trace).passed


def test_a_begin_of_text_token_stands_before_the_text(chat):
    plain, begun = chat.tokenize(TEXT), chat.tokenize(TEXT, template="begin")
    assert begun.ids.tolist() == [special(chat, "<|begin|>"), *plain.ids.tolist()]
    assert begun.is_special.tolist() == [True] + [False] * len(plain)
    assert begun.is_added.tolist() == begun.is_special.tolist()
    assert begun.labels == ("<|begin|>", *plain.labels)
    assert begun.word.tolist() == [-1, *plain.word.tolist()]
    assert attnviz.verify(chat, chat.trace(TEXT, template="begin")).passed


def test_nothing_is_added_unasked(chat):
    assert chat.tokenize(TEXT).ids.tolist() == chat.tokenizer(TEXT)["input_ids"]
    assert chat.tokenize(TEXT).template == "plain"


def test_a_special_token_in_the_text_is_special(chat):
    tokens = chat.tokenize("<|begin|>a<|said|><|end|>")
    assert tokens.labels == ("<|begin|>", "a", "<|said|>", "<|end|>")
    assert tokens.is_special.tolist() == [True, False, True, True]
    assert tokens.in_text == (0, 2, 3)
    assert not tokens.is_added.any()


def test_masks_and_unknown_pieces_are_not_special(tiny_model):
    bert = tiny_model("bert")
    tokens = bert.tokenize("the [MASK] \N{SNOWMAN} [SEP] [UNK]")
    assert tokens.labels == ("[CLS]", "the", "[MASK]", "[UNK]", "[SEP]", "[UNK]", "[SEP]")
    assert tokens.is_special.tolist() == [True, False, False, False, True, True, True]
    assert tokens.is_added.tolist() == [True, False, False, False, False, False, True]
    with pytest.raises(
        attnviz.SelectionError, match=r"Token 4, \[SEP\], was to be masked; it is a special token"
    ):
        bert.trace("the [MASK] \N{SNOWMAN} [SEP] [UNK]", masked=[4])


def test_a_decoder_keeps_the_end_that_is_written_in_its_text(tiny_model):
    """Only the end token that the tokenizer adds is left out of what a decoder has written."""
    t5 = tiny_model("t5")
    end = t5.tokenizer.eos_token
    ids = t5.trace("a door", f"the cat {end}").target_tokens.ids.tolist()
    assert ids[1:] == t5.tokenizer(text_target=f"the cat {end}")["input_ids"][:-1]
    assert ids[-1] == t5.tokenizer.eos_token_id


def test_a_cut_takes_the_reader_s_words_and_leaves_the_template(chat):
    whole = chat.tokenize(TEXT, template="chat")
    begin = "".join(whole.pieces).index("the cat")
    tokens = chat.tokenize(TEXT, template="chat", cut=True, max_tokens=len(whole) - 3)
    assert "".join(tokens.pieces) == "".join(whole.pieces)[: begin + 4] + "".join(whole.pieces)[begin + 7 :]
    assert tokens.n_cut == (3,)
    assert chat.token_ids(tokens) == tokens.ids.tolist()
    with pytest.raises(attnviz.TextTooLongError, match="chat template alone is"):
        chat.tokenize(TEXT, template="chat", cut=True, max_tokens=len(whole) - 8)
    begun = chat.tokenize(TEXT, template="begin", cut=True, max_tokens=4)
    assert (begun.labels, begun.n_cut) == (("<|begin|>", "t", "h", "e"), (4,))


def test_what_there_is_to_choose_from(chat, tiny_model, tmp_path):
    assert chat.templates == ("plain", "begin", "chat")
    assert tiny_model("bert").templates == ("plain",)  # has no begin-of-text token
    assert tiny_model("roberta").templates == ("plain",)  # adds it by itself
    assert tiny_model("t5").templates == ("plain",)  # an encoder reads what its tokenizer makes
    plain = model_with(chat_tokenizer(None), tmp_path / "plain")
    assert plain.templates == ("plain",)


@pytest.mark.parametrize(("template", "reason"), [("begin", "bert has plain"), ("chat", "bert has plain")])
def test_a_template_that_there_is_not(tiny_model, template, reason):
    with pytest.raises(attnviz.SelectionError, match=f"The template '{template}' was asked for; {reason}"):
        tiny_model("bert").trace(TEXT, template=template)


def test_a_message_is_one_text(chat):
    with pytest.raises(attnviz.SelectionError, match="a message is one text"):
        chat.trace(TEXT, "a door", template="chat")
    assert chat.tokenize(TEXT, "a", template="begin").segment.tolist() == [0] * 8 + [1]


def test_a_text_without_a_token_is_empty_in_a_template_too(chat):
    with pytest.raises(attnviz.EmptyTextError):
        chat.tokenize("  ", template="chat")


def looped(inside, add="<|begin|>assistant: "):
    """A template that writes the messages and the beginning of an answer."""
    return f"{{% for message in messages %}}{inside}{{% endfor %}}{add}"


LLAVA = looped(
    "{{ message['role'].upper() + ': ' }}"
    "{% for part in message['content'] | selectattr('type', 'equalto', 'image') %}{{ '<image>\n' }}{% endfor %}"
    "{% for part in message['content'] | selectattr('type', 'equalto', 'text') %}{{ part['text'] + ' ' }}{% endfor %}"
)
"""As llava-hf/llava-1.5-7b-hf has it."""
FIRST = looped("{{ message.content[0].text }}")
SMOLVLM = looped(
    "{% if message['content'][0]['type'] == 'image' %}{{ ':' }}{% else %}{{ ': ' }}{% endif %}"
    "{% for line in message['content'] %}{% if line['type'] == 'text' %}{{ line['text'] }}{% endif %}{% endfor %}"
)
EITHER = looped(
    "{% if message.content is string %}<s>{{ message.content }}{% else %}{% for part in message.content %}<p>{{ part.text }}"
    "{% endfor %}{% endif %}"
)
AGAINST_STRINGS = looped(
    "{% if message.content is string %}{{ raise_exception('Parts!') }}{% endif %}{{ message.content[0].text }}"
)


@pytest.mark.parametrize("template", [LLAVA, FIRST, SMOLVLM, EITHER, AGAINST_STRINGS])
@pytest.mark.parametrize(
    "text", ["the cat", "a", "assistant: ", "\U000f0000 private \ue000", 'say "it\'s"\n', "  {{ 1 }}"]
)
def test_a_chat_holds_the_text_once_and_where_it_is_said_to_be(template, text):
    tokenizer = chat_tokenizer(template)
    read = framed(tokenizer, (text,), "chat")
    [whole] = read.texts
    assert whole[slice(*read.content)] == text
    content = text if template == EITHER else [{"type": "text", "text": text}]
    chat = {"add_generation_prompt": True, "conversation": [{"role": "user", "content": content}]}
    assert whole == tokenizer.apply_chat_template(**chat, tokenize=False)
    tokens = tokenize(tokenizer, text, max_tokens=None, template="chat")
    assert tokens.ids.tolist() == list(tokenizer.apply_chat_template(**chat, return_dict=True)["input_ids"])


@pytest.mark.parametrize(
    ("inside", "text", "own"),
    [
        ("{{ message.content | trim }}", "  the cat \n", "the cat"),
        ("{{ message.content.lstrip() }}", "  the cat \n", "the cat \n"),
        ("{{ message.content.rstrip() }}", "  the cat \n", "  the cat"),
        ("{{ message.content[0].text | trim }}", " the cat ", "the cat"),
        ("{{ message.content | tojson }}", "the cät", "the cät"),
        ("{{ message.content | lower }}", "the cat", "the cat"),
        ("{{ message.content }}{% if 'cat' in message.content %}!{% endif %}", "the cat", "the cat"),
        ("{{ message.content }}{{ message | tojson | length * 0 }}", "the cat", "the cat"),
    ],
)
def test_a_template_may_take_spaces_off_and_leave_the_text_as_it_is(inside, text, own):
    tokenizer = chat_tokenizer(looped(f"user: {inside} "))
    read = framed(tokenizer, (text,), "chat")
    assert read.texts[0][slice(*read.content)] == own
    assert read.texts[0].startswith("user: ")


@pytest.mark.parametrize(
    ("inside", "text", "reason"),
    [
        ("{{ message.role }}", "a cat", "leaves the text out"),
        ("{{ message.text }}", "a cat", "leaves the text out"),
        ("{{ message.content | length }}", "a cat", "leaves the text out"),
        ("{% for part in message.content %}{{ part.words }}{% endfor %}", "a cat", "leaves the text out"),
        ("{{ message.content + message.content }}", "a cat", "writes the text 2 times"),
        ("{{ message.content * 3 }}", "a cat", "writes the text 3 times"),
        ("{{ message.content | upper }}", "a cat", "does not write the text as it is"),
        ("{{ message.content | lower }}", "A cat", "does not write the text as it is"),
        ("{{ message.content | tojson }}", 'a "cat"', "does not write the text as it is"),
        ("{{ message.content | tojson }}", "a\ncat", "does not write the text as it is"),
        ("{{ message.content | e }}", "a < b", "does not write the text as it is"),
        ("{{ message.content[:3] }}", "a cat", "does not write the text as it is"),
        ("{{ message.content[:3] | tojson }}", "a cat", "does not write the text as it is"),
        ("{{ message.content[1:] }}", "a cat", "does not write the text as it is"),
        ("{{ message.content | replace('cat', 'dog') }}", "a cat", "does not write the text as it is"),
        ("{{ message.content.split('|')[0] }}", "a | b", "does not write the text as it is"),
        ("{{ message.content | reverse }}", "a cat", "does not write the text as it is"),
        ("{{ message.content.split() | join(' ') }}", "a  cat", "does not write the text as it is"),
        (
            "{% if message.content.startswith('a') %}A:{% endif %}{{ message.content }}",
            "a cat",
            "writes other things around",
        ),
        ("{{ message.content | length }}{{ message.content }}", "a cat", "writes other things around"),
        (
            "{% if message.content != 'a cat' %}{{ message.content }}{% endif %}",
            "a cat",
            "writes other things around",
        ),
    ],
)
def test_a_template_that_does_not_hold_the_text_is_refused(inside, text, reason):
    with pytest.raises(attnviz.ModelFailedError) as caught:
        framed(chat_tokenizer(looped(inside)), (text,), "chat")
    message = str(caught.value)
    assert message.startswith(f"The chat template of this model {reason}")
    assert message.endswith(" Read the text without it.")
    assert "tokenizer" not in message


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('No user here') }}", "TemplateError: No user here."),
        ("{% for message in messages %}", "TemplateSyntaxError: "),
        ("{{ messages[0].content | no_such_filter }}", "No filter named 'no_such_filter'"),
        ("{{ nothing.at_all }}", "UndefinedError: 'nothing' is undefined."),
        ("{% for tool in tools %}{{ tool }}{% endfor %}", "TypeError: "),
        ("{{ messages[0].content + 1 }}", "TypeError: "),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ({"rag": "{{ messages }}", "tool_use": "{{ messages }}"}, "multiple chat templates with no default"),
    ],
)
def test_a_template_that_fails_is_what_failed(template, reason, tmp_path):
    model = model_with(chat_tokenizer(template), tmp_path / "broken")
    with pytest.raises(attnviz.ModelFailedError) as caught:
        model.tokenize(TEXT, template="chat")
    message = str(caught.value)
    assert message.startswith("The chat template of this model fails: ") and reason in message
    assert message.endswith(" Read the text without it.")
    assert "\n" not in message and str(tmp_path) not in message
    assert model.trace(TEXT).tokens.text == TEXT  # which is read without it


@pytest.mark.parametrize("is_file", [False, True])
def test_of_several_templates_the_default_is_used(is_file, tmp_path):
    tokenizer = chat_tokenizer({"tool_use": "{{ tools[0] }}", "default": looped("{{ message.content }}")})
    tiny.build(tiny.TEXT_FAMILIES["llama"]).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path, save_jinja_files=is_file)
    assert (tmp_path / "chat_template.jinja").is_file() == is_file
    model = attnviz.load_model(str(tmp_path))
    assert "".join(model.tokenize(TEXT, template="chat").pieces) == f"{TEXT}<|begin|>assistant: "


def test_a_verdict_sees_a_text_that_its_tokens_do_not_hold(tmp_path):
    """Tokens of another text in the same template do not verify."""
    model = model_with(chat_tokenizer(LLAVA), tmp_path / "parts")
    trace = model.trace(TEXT, template="chat")
    assert attnviz.verify(model, trace).passed
    other = model.trace("the dog", template="chat").tokens
    forged = replace(trace, tokens=replace(other, text=TEXT))
    assert "tokens" in [check.name for check in attnviz.verify(model, forged).failed]


def test_a_bundle_keeps_what_was_put_around_the_text(chat):
    from attnviz.bundle.reading import read_bundle
    from attnviz.bundle.writing import write_bundle
    from attnviz.records import Axis

    for template in ("begin", "chat"):
        trace = chat.trace(TEXT, template=template)
        axis = Axis.of(trace.tokens)
        bundle = attnviz.Bundle(
            trace=trace,
            report=attnviz.verify(chat, trace),
            kind="decoder",
            layer=1,
            head=1,
            queries=axis,
            keys=axis,
            query=1,
            key=0,
        )
        read = read_bundle(write_bundle(bundle)).trace.tokens
        assert (read.template, read.in_text) == (template, trace.tokens.in_text)
        assert read.equal(trace.tokens)
