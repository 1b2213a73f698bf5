"""Decoders with a chat template and a begin-of-text token that their tokenizer does not add."""

from pathlib import Path

import transformers as tf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import attnviz
from attnviz.model.model import Model
from tests import tiny

SPECIAL = ("<|end|>", "<|begin|>", "<|said|>")
CHAT = (
    "{{ '<|begin|>x<|said|>' }}"
    "{% for message in messages %}{{ '<|begin|>' + message['role'] + '\n' + message['content'] | trim + '<|said|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|begin|>assistant\n' }}{% endif %}"
)


def chat_tokenizer(chat: str | None = CHAT, **special: str) -> tf.PreTrainedTokenizerFast:
    """A token a byte and three special tokens, of which one is only added to the vocabulary; nothing is added to a text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({one: number for number, one in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(list(SPECIAL))
    found = tf.PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=SPECIAL[0], unk_token=SPECIAL[0], **special
    )
    found.chat_template = chat
    return found


def model_with(tokenizer: tf.PreTrainedTokenizerFast, folder: Path) -> Model:
    """A tiny Llama with this tokenizer, saved in the folder."""
    tiny.build(tiny.TEXT_FAMILIES["llama"]).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return attnviz.load_model(str(folder))
