"""GGUF files: a tiny Llama written as llama.cpp's converter would, damaged ones, and the bundled language model."""

import os
import shutil
import struct
import threading
from hashlib import sha256
from pathlib import Path

import gguf
import huggingface_hub.utils._cache_assets
import numpy as np
import pytest
import torch
import transformers as tf
from tokenizers import pre_tokenizers

import attnviz
from attnviz.errors import ModelNotAvailableError
from attnviz.model import gguf as reading
from attnviz.model.catalogue import SMOLLM2, locate, offer

LAYERS, HEADS, KEY_VALUE_HEADS, D_HEAD, D_INNER = 2, 4, 2, 8, 64
D_MODEL = HEADS * D_HEAD
ENTRIES = ["<unk>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "the"]
MERGES = ["t h", "th e"]
TEXT = "the door"
IDS = [ENTRIES.index(name) for name in ("the", "Ġ", "d", "o", "o", "r")]
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
"""llama.cpp's names. Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, "Standardized tensor names"."""


@pytest.mark.parametrize(
    "error", [MemoryError(), ModelNotAvailableError("Our own."), RuntimeError("can't allocate memory")]
)
def test_what_is_no_damage_passes(error):
    with pytest.raises(type(error)) as caught, reading._damage_named("mine"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no magic.\nAnd a second line"), "ValueError: no magic."),
        (KeyError(), "KeyError."),
        (OSError("no /srv/my models/mine.gguf."), "OSError: no mine.gguf."),
        (struct.error("unpack_from requires a buffer of at least 24 bytes"), "It is cut off."),
    ],
)
def test_damage_is_one_sentence(error, reason):
    with pytest.raises(ModelNotAvailableError) as caught, reading._damage_named("mine"):
        raise error
    assert str(caught.value).startswith(
        f"The GGUF file of mine cannot be read: {reason} Copy it there again, or "
    )


def llama() -> tf.LlamaForCausalLM:
    torch.manual_seed(3)
    config = tf.LlamaConfig(
        vocab_size=len(ENTRIES),
        hidden_size=D_MODEL,
        intermediate_size=D_INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_VALUE_HEADS,
        max_position_embeddings=64,
    )
    network = tf.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.3)
    return network


def reordered(weight: np.ndarray, n_head: int) -> np.ndarray:
    """Rows of a query or key projection as llama.cpp has them: the two of one rotation beside each other."""
    rows = weight.reshape(n_head, 2, D_HEAD // 2, -1)
    return np.ascontiguousarray(rows.transpose(0, 2, 1, 3)).reshape(weight.shape)


def write(network: tf.LlamaForCausalLM, file: Path, extra: dict[str, np.ndarray] | None = None) -> Path:
    """The network as a GGUF file of plain numbers; further tensors where there are."""
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(D_MODEL)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(D_INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_VALUE_HEADS)
    writer.add_layer_norm_rms_eps(network.config.rms_norm_eps)
    writer.add_rope_dimension_count(D_HEAD)
    writer.add_rope_freq_base(10_000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(ENTRIES)
    writer.add_token_types([3, 3, 3] + [1] * (len(ENTRIES) - 3))
    writer.add_token_merges(MERGES)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, tensor in network.state_dict().items():
        numbers = tensor.numpy()
        if ".q_proj" in name:
            numbers = reordered(numbers, HEADS)
        if ".k_proj" in name:
            numbers = reordered(numbers, KEY_VALUE_HEADS)
        writer.add_tensor(there(name), numbers)
    for name, numbers in (extra or {}).items():
        writer.add_tensor(name, numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def there(name: str) -> str:
    """The name of a parameter in a GGUF file."""
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    path, _, last = name.rpartition(".")
    if path in whole:
        return f"{whole[path]}.{last}"
    _, _, layer, part = path.split(".", maxsplit=3)
    return f"blk.{layer}.{NAMES[part]}.{last}"


@pytest.fixture(autouse=True)
def assets(tmp_path, monkeypatch):
    """An assets cache of this test's own, empty."""
    monkeypatch.setattr(huggingface_hub.utils._cache_assets, "HF_ASSETS_CACHE", str(tmp_path / "assets"))
    return tmp_path / "assets"


@pytest.fixture(scope="module")
def network():
    return llama()


@pytest.fixture
def file(network, tmp_path):
    return write(network, tmp_path / "small.gguf")


class TestATinyLlama:
    def test_it_answers_as_the_network_that_was_written(self, network, file):
        model = attnviz.load_model(str(file))
        trace = model.trace(TEXT)
        assert trace.tokens.ids.tolist() == IDS
        expected = network(torch.tensor([IDS]), output_hidden_states=True)
        np.testing.assert_allclose(trace.last_hidden_state, expected.hidden_states[-1][0].detach(), atol=1e-5)
        logits = model.language_head(inputs_embeds=torch.tensor(trace.last_hidden_state)[None]).logits[0]
        np.testing.assert_allclose(logits.detach(), expected.logits[0].detach(), atol=1e-4)
        assert attnviz.verify(model, trace).passed

    def test_every_tensor_is_accounted_for(self, network, file):
        account = attnviz.load_model(str(file)).weights.account
        assert account.n_used == account.n_tensor == len(network.state_dict())
        assert account.quantization == "F32"

    def test_its_digest_is_the_files_and_its_name_too(self, file):
        model = attnviz.load_model(str(file))
        [(name, digest)] = model.weights_sha256.items()
        assert (model.name, model.revision, name) == ("small", "local file", "small.gguf")
        assert digest == sha256(file.read_bytes()).hexdigest()

    def test_the_folder_of_one_file_will_do(self, file):
        assert attnviz.load_model(str(file.parent)).weights_sha256.keys() == {"small.gguf"}

    def test_it_is_dequantised_once(self, file, monkeypatch):
        first = attnviz.load_model(str(file)).folder
        monkeypatch.setattr(reading, "_make", None)
        assert attnviz.load_model(str(file)).folder == first

    def test_what_was_made_is_hashed_once(self, file, monkeypatch):
        hashed, sha256 = [], reading._sha256
        monkeypatch.setattr(reading, "_sha256", lambda path: (hashed.append(path.suffix), sha256(path))[1])
        for _ in range(2):
            attnviz.load_model(str(file))
        assert hashed.count(".safetensors") == 1

    def test_a_made_folder_that_was_copied_is_not_made_again(self, file, monkeypatch):
        """Its weights have another modification time; their bytes are the same."""
        [made] = attnviz.load_model(str(file)).folder.glob("*.safetensors")
        os.utime(made, (1, 1))
        monkeypatch.setattr(reading, "_make", None)
        attnviz.load_model(str(file))

    def test_of_two_at_once_one_makes_the_folder(self, file, monkeypatch):
        made, make = [], reading._make

        def counted(*arguments):
            made.append(arguments)
            make(*arguments)

        monkeypatch.setattr(reading, "_make", counted)
        both = [threading.Thread(target=reading.dequantised, args=("small", file)) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        assert len(made) == 1

    def test_a_file_that_is_written_later_turns_the_verdict_red(self, network, file):
        model = attnviz.load_model(str(file))
        trace = model.trace(TEXT)
        assert attnviz.verify(model, trace).passed
        file.write_bytes(file.read_bytes()[:-4] + b"\0\0\1\0")
        assert not attnviz.verify(model, trace).passed

    def test_so_does_what_was_made_of_it(self, file):
        model = attnviz.load_model(str(file))
        trace = model.trace(TEXT)
        [made] = model.folder.glob("*.safetensors")
        shutil.copy(made, f"{made}.new")
        Path(f"{made}.new").replace(made)
        assert not attnviz.verify(model, trace).passed

    def test_a_made_folder_whose_numbers_were_changed_is_made_again(self, file):
        [made] = attnviz.load_model(str(file)).folder.glob("*.safetensors")
        right = made.read_bytes()
        made.write_bytes(right[:-1] + bytes([right[-1] ^ 64]))
        attnviz.load_model(str(file))
        assert made.read_bytes() == right

    def test_what_a_process_left_that_was_ended_while_it_wrote_is_deleted(self, file, tmp_path):
        folder = attnviz.load_model(str(file)).folder
        left = folder.with_name(f"{folder.name}.x1y2")
        folder.rename(left)
        assert attnviz.load_model(str(file)).folder == folder
        assert not left.exists()

    def test_the_case_of_its_ending_does_not_matter(self, file):
        there = file.rename(file.with_suffix(".GGUF"))
        assert attnviz.load_model(str(there)).weights_sha256.keys() == {"small.GGUF"}


class TestRefused:
    def test_a_tensor_that_has_no_place(self, network, tmp_path):
        file = write(network, tmp_path / "a.gguf", {"rope_freqs.weight": np.ones(4, dtype=np.float32)})
        with pytest.raises(
            ModelNotAvailableError, match=r"holds 1 of its tensors, such as rope_freqs\.weight"
        ):
            attnviz.load_model(str(file))

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (
                b"not a model",
                r"bad\.gguf of bad is a text, which begins with “not a model”, not a GGUF file\. Copy it",
            ),
            (b"GGUF\3\0\0\0", r"cannot be read: It is cut off\."),
            (b"GGUF\1\0\0\0", "of version 1; versions 2 and 3 are read"),
            (b"GGUF\x63\0\0\0 and more", "of version 99; versions 2 and 3 are read"),
            (b"GGUF\0\0\0\3", "for big-endian machines"),
            (b"GGUF\0\0\0\2", "for big-endian machines"),
            (b"<!DOCTYPE html>", "is an HTML page"),
            (b"PK\3\4", "is a file that torch.save wrote, not a GGUF file"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n", "Git LFS pointer"),
            (b"", r"is empty \(0 bytes\)"),
        ],
    )
    def test_what_is_no_gguf_file(self, tmp_path, content, reason):
        file = tmp_path / "bad.gguf"
        file.write_bytes(content)
        with pytest.raises(ModelNotAvailableError, match=reason) as refused:
            attnviz.load_model(str(file))
        assert str(tmp_path) not in str(refused.value)

    def test_half_a_file(self, file, assets):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        with pytest.raises(ModelNotAvailableError, match=r"cannot be read: It is cut off\."):
            attnviz.load_model(str(file))
        assert not list(assets.rglob("*.safetensors"))  # no partial file is kept

    @pytest.mark.parametrize(("part", "is_whole"), [("00002-of-00003", False), ("00001-of-00001", True)])
    def test_a_part_of_several(self, file, part, is_whole):
        moved = file.rename(file.with_name(f"small-{part}.gguf"))
        if is_whole:
            attnviz.load_model(str(moved))
            return
        with pytest.raises(
            ModelNotAvailableError, match=r"part 2 of 3 of a GGUF file.*llama-gguf-split --merge"
        ):
            attnviz.load_model(str(moved))

    def test_another_architecture(self, tmp_path):
        writer = gguf.GGUFWriter(tmp_path / "a.gguf", "rwkv6")
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        with pytest.raises(ModelNotAvailableError, match=r"cannot be read.*rwkv6"):
            attnviz.load_model(str(tmp_path / "a.gguf"))

    def test_several_files_in_a_folder(self, file):
        shutil.copy(file, file.with_name("other.gguf"))
        with pytest.raises(ModelNotAvailableError, match="one file by its path"):
            attnviz.load_model(str(file.parent))

    def test_no_room_for_the_folder(self, file, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(reading, "save_file", full)
        with pytest.raises(ModelNotAvailableError, match=r"No space left on device.*HF_HOME"):
            attnviz.load_model(str(file))


class TestTheBundledLanguageModel:
    """The real weights; the numbers of a prompt were measured with transformers alone."""

    def test_it_answers_as_it_should(self, smollm2):
        trace = smollm2.trace("When Mary and John went to the store, John gave a drink to")
        prediction = attnviz.predict(smollm2, trace, len(trace.tokens) - 1, top=1)
        assert prediction.labels == ("␣Mary",) and prediction.probabilities[0] == pytest.approx(
            0.923, abs=5e-4
        )

    def test_its_weights_are_accounted_for(self, smollm2):
        assert (smollm2.weights.account.n_used, smollm2.weights.account.n_tensor) == (272, 272)
        assert smollm2.weights.account.quantization == "Q4_1"
        assert list(smollm2.weights_sha256) == ["SmolLM2-135M-Instruct.Q4_1.gguf"]

    @pytest.mark.nightly
    def test_numbers_follow_llama_cpps_rule(self, smollm2):
        """Q4_1: blocks of 32 numbers, d and m in half precision, then 16 bytes; x = d q + m, low nibbles first.

        Source: https://github.com/ggml-org/llama.cpp, ``ggml-common.h`` block_q4_1 and ``dequantize_row_q4_1``.
        """
        tensor = next(
            tensor
            for tensor in gguf.GGUFReader(locate(offer(SMOLLM2)).gguf).tensors
            if "blk.3.ffn_up" in tensor.name
        )
        blocks = np.asarray(tensor.data).view(np.uint8).reshape(-1, 20)
        d, m = blocks[:, :4].copy().view(np.float16).astype(np.float32).T[..., None]
        nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
        loaded = smollm2.network.layers[3].mlp.up_proj.weight
        np.testing.assert_array_equal((d * nibbles + m).reshape(loaded.shape), loaded.detach())

    def test_its_weights_lie_in_the_file_that_all_processes_map(self, smollm2):
        mapped = Path("/proc/self/maps").read_text()
        address = smollm2.network.layers[3].mlp.up_proj.weight.data_ptr()
        lines = [line.split() for line in mapped.splitlines() if ".safetensors" in line]
        spans = [[int(end, 16) for end in line[0].split("-")] for line in lines]
        assert any(first <= address < last for first, last in spans)
