"""Every tensor of a checkpoint's file: in the model with the file's numbers, of a part that is not loaded, or a reason to refuse."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import attnviz
from attnviz.errors import ModelNotAvailableError, UnsupportedArchitectureError
from attnviz.model import checkpoint as reading
from attnviz.model import loading, weights
from attnviz.records import FILE
from tests import tiny
from tests.hub import with_pickle_weights
from tests.tiers import first_gates

TEXT = "I was watching the door"
QUERY = "encoder.layer.1.attention.self.query"
CAUSAL = torch.ones(tiny.LIMIT, tiny.LIMIT).tril()
FREQUENCIES = 10_000 ** -(torch.arange(5) / 5)
"""Of rotary positions with d_head 10 (Su et al. 2021, arXiv:2104.09864, section 3.2.2)."""
CROSS_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
"""In Google's own checkpoints of T5, where no version of its class reads it."""
PADDING = 0
HEADS = ("cls.predictions", "lm_head", "predictions", "classifier")


def waves(n_row: int, width: int) -> torch.Tensor:
    """Fairseq's positions: sines beside cosines; the padding token's row is 0."""
    rates = 10_000 ** -(torch.arange(width // 2, dtype=torch.float64) / (width // 2 - 1))
    angles = torch.arange(n_row)[:, None] * rates
    table = torch.cat([angles.sin(), angles.cos()], dim=1)
    table[PADDING] = 0
    return table.float()


@pytest.fixture
def saved(tmp_path) -> Callable[[str], Path]:
    """The folder of a family's tiny checkpoint, which a test may change; with the class of its model, one with a head."""

    def save(name: str, whole: type[tf.PreTrainedModel] | None = None) -> Path:
        folder = tmp_path / "mine"
        if whole is None:
            return tiny.save(tiny.TEXT_FAMILIES[name], folder)
        tiny.save(tiny.TEXT_FAMILIES[name], folder)
        torch.manual_seed(2)
        whole(tiny.TEXT_FAMILIES[name].config()).save_pretrained(folder)
        return folder

    return save


def weights_file(folder: Path) -> Path:
    return folder / "model.safetensors"


def change_file(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Writes the weights anew after a change of their tensors by name."""
    tensors = load_file(weights_file(folder))
    change(tensors)
    save_file(tensors, weights_file(folder), metadata={"format": "pt"})


def add(folder: Path, *names: str) -> None:
    change_file(folder, lambda tensors: tensors.update({name: torch.ones(2, 3) for name in names}))


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def names_in(folder: Path) -> list[str]:
    with safe_open(weights_file(folder), framework="np") as file:
        return list(file.keys())


def refusal(folder: Path) -> str:
    with pytest.raises(ModelNotAvailableError) as caught:
        attnviz.load_model(str(folder))
    message = str(caught.value)
    assert "mine" in message and str(folder) not in message and "\n" not in message
    return message


class TestUsed:
    @pytest.mark.parametrize(
        "name", first_gates("bert", "mixtral", *sorted(tiny.TEXT_FAMILIES.keys() - {"bert", "mixtral"}))
    )
    def test_all_tensors_of_a_family(self, name, tiny_model):
        model = tiny_model(name)
        account = model.weights.account
        assert account.n_used == account.n_tensor == len(names_in(model.folder)) > 10
        assert (account.parts, account.left_out) == ({}, ())

    @pytest.mark.parametrize("name", first_gates("roberta", *sorted(tiny.WITH_HEAD.keys() - {"roberta"})))
    def test_all_tensors_with_a_language_head(self, name, headed):
        model, folder = headed(name)
        assert model.language_head is not None
        assert model.weights.account.n_used == model.weights.account.n_tensor == len(names_in(folder))

    @pytest.mark.parametrize("name", first_gates("albert", *sorted(tiny.WITH_CLASSIFIER.keys() - {"albert"})))
    def test_all_tensors_with_a_classifier(self, name, classifying):
        model, folder = classifying(name)
        assert model.weights.account.n_used == model.weights.account.n_tensor == len(names_in(folder))

    def test_names_of_the_first_bert(self, saved):
        """Norms are called gamma and beta in checkpoints that were converted from TensorFlow."""
        folder = saved("bert")

        def rename(tensors):
            for name in list(tensors):
                new = re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", name)
                tensors[re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", new)] = tensors.pop(name)

        change_file(folder, rename)
        assert sum(name.endswith("gamma") for name in names_in(folder)) == 7
        account = attnviz.load_model(str(folder)).weights.account
        assert account.n_used == account.n_tensor == len(names_in(folder))

    def test_several_tensors_for_one_place(self, saved):
        """Published checkpoints of ESM have the frequencies of its rotary positions in every layer."""
        folder = saved("esm")

        def move(tensors):
            frequencies = tensors.pop(next(tensor for tensor in tensors if tensor.endswith("inv_freq")))
            for layer in range(tiny.ENCODER_LAYERS):
                name = f"esm.encoder.layer.{layer}.attention.self.rotary_embeddings.inv_freq"
                tensors[name] = frequencies.clone()

        change_file(folder, move)
        account = attnviz.load_model(str(folder)).weights.account
        assert account.n_used == account.n_tensor == len(names_in(folder))

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_numbers_are_compared_in_the_model_s_dtype(self, dtype, checkpoint):
        model = attnviz.load_model(str(checkpoint("bert")), dtype=dtype)
        assert model.weights.account.n_used == model.weights.account.n_tensor

    def test_of_a_pickle(self, saved):
        folder = saved("bert")
        n_tensor = len(names_in(folder))
        account = attnviz.load_model(str(with_pickle_weights(folder))).weights.account
        assert (account.n_used, account.n_tensor) == (n_tensor, n_tensor)

    def test_of_every_shard_and_of_no_file_that_the_index_does_not_name(self, saved):
        folder = saved("bert")
        names = names_in(folder)
        tf.AutoModel.from_pretrained(folder).save_pretrained(folder, max_shard_size="6KB")
        shards = sorted(folder.glob("model-*.safetensors"))
        assert len(shards) > 1
        weights_file(folder).unlink()
        save_file({"encoder.stray": torch.ones(2, 2)}, folder / "model-99999-of-99999.safetensors")
        model = attnviz.load_model(str(folder))
        assert model.weights.account.n_used == model.weights.account.n_tensor == len(names)
        assert list(model.weights_sha256) == [path.name for path in shards]


class TestNotLoaded:
    """What a checkpoint may have beyond the loaded class."""

    def test_heads_for_other_tasks_are_named(self, saved):
        model = attnviz.load_model(str(saved("bert", tf.BertForPreTraining)))
        assert model.language_head is not None  # of masked tokens
        assert model.weights.account.parts == {
            "cls": 2,
            "pooler": 2,
        }  # of the next sentence, and what it reads
        assert model.weights.account.n_used + 4 == model.weights.account.n_tensor
        account = str(model.weights.account)
        assert account.endswith("Parts that are not loaded: cls (2), pooler (2).")

    @pytest.mark.parametrize(
        ("family", "whole", "part"),
        [
            ("bert", tf.BertForQuestionAnswering, "qa_outputs"),
            ("roberta", tf.RobertaForTokenClassification, "classifier"),
            ("distilbert", tf.DistilBertForQuestionAnswering, "qa_outputs"),
            ("gpt2", tf.GPT2ForTokenClassification, "classifier"),
            ("bart", tf.BartForConditionalGeneration, "final_logits_bias"),
        ],
    )
    def test_heads_that_attnviz_does_not_load(self, family, whole, part, saved):
        model = attnviz.load_model(str(saved(family, whole)))
        assert (model.language_head, model.classifier) == (None, None)
        assert set(model.weights.account.parts) == {part}

    def test_a_head_in_a_file_that_names_none(self, saved):
        """Such as a checkpoint whose configuration has no architectures."""
        folder = saved("bert", tf.BertForMaskedLM)
        change_config(folder, architectures=None)
        model = attnviz.load_model(str(folder))
        assert model.language_head is None
        assert set(model.weights.account.parts) == {"cls"}

    @pytest.mark.parametrize(
        ("family", "name", "constant"),
        [
            ("bert", "embeddings.position_ids", torch.arange(5)[None]),
            ("roberta", "roberta.embeddings.position_ids", torch.arange(tiny.LIMIT)[None].float()),
            ("bert", "bert.embeddings.token_type_ids", torch.zeros(1, tiny.LIMIT)),
            ("gpt2", "h.1.attn.bias", CAUSAL[None, None]),
            ("gpt2", "h.1.crossattention.bias", CAUSAL[None, None].to(torch.uint8)),
            ("gpt2", "transformer.h.1.attn.masked_bias", torch.tensor(-1e4)),
            ("gpt-neox", "gpt_neox.layers.0.attention.bias", CAUSAL[None, None].bool()),
            ("gpt-neox", "gpt_neox.layers.0.attention.masked_bias", torch.tensor(-1e9).half()),
            ("gpt-neox", "layers.2.attention.rotary_emb.inv_freq", torch.ones(1, dtype=torch.bfloat16)),
            ("gpt-bigcode", "h.1.attn.bias", CAUSAL.bool()),
            ("llama", "model.layers.1.self_attn.rotary_emb.inv_freq", FREQUENCIES),
            ("llama", "model.rotary_emb.inv_freq", FREQUENCIES.half()),
            ("modernbert", "layers.1.attn.rotary_emb.inv_freq", FREQUENCIES),
            ("m2m-100", "model.decoder.embed_positions.weights", waves(tiny.LIMIT + 2, tiny.D_MODEL)),
            ("bart", "model.encoder.version", torch.tensor([3.0])),
            ("opt", "decoder.version", torch.tensor([3.0])),
            ("t5", CROSS_BIAS, torch.ones(8, tiny.HEADS)),
            (
                "deberta",
                "deberta.embeddings.position_embeddings.weight",
                torch.ones(tiny.LIMIT, tiny.D_MODEL),
            ),
            ("esm", "esm.embeddings.position_embeddings.weight", torch.ones(tiny.LIMIT, 20)),
        ],
    )
    def test_what_the_class_makes_itself(self, family, name, constant, saved):
        folder = saved(family)
        change_file(folder, lambda tensors: tensors.update({name: constant}))
        account = attnviz.load_model(str(folder)).weights.account
        assert (account.left_out, account.parts) == ((name,), {})
        assert account.n_used == account.n_tensor - 1
        assert str(account).endswith(f"Constants, and what the class does not read: 1, such as {name}.")

    def test_position_ids_are_used_where_the_class_makes_the_same_ones(self, saved):
        folder = saved("bert")
        ids = torch.arange(tiny.LIMIT)[None]
        change_file(folder, lambda tensors: tensors.update({"bert.embeddings.position_ids": ids}))
        account = attnviz.load_model(str(folder)).weights.account
        assert account.n_used == account.n_tensor == len(names_in(folder))
        change_file(
            folder, lambda tensors: tensors.update({"bert.embeddings.position_ids": ids.flip(1).clone()})
        )
        assert "1 of the tensors of mine, such as bert.embeddings.position_ids, do not" in refusal(folder)

    def test_many_parts_are_counted_and_few_of_them_named(self):
        account = weights.Account(n_used=7, parts={f"part {n}": n for n in range(1, 9)}, left_out=())
        assert str(account) == (
            "7 of 43 used: the numbers in memory are those of the file. Parts that are not loaded: part 1 (1), "
            "part 2 (2), part 3 (3), part 4 (4), part 5 (5) and 3 more."
        )


class TestRefused:
    """A tensor of the loaded parts that is not in the model."""

    @pytest.mark.parametrize(
        "added",
        [
            ["encoder.layer.0.attention.self.distance_embedding.weight"],
            ["bert.encoder.layer.3.output.dense.weight"],
            ["embeddings.prompt.weight"],
            [f"{QUERY}.weight_scale", f"{QUERY}.input_scale"],
            [f"bert.{QUERY}.scales"],
            ["encoder.layer.0.output.lambda_1"],
        ],
        ids=lambda names: names[0],
    )
    def test_one_within_the_network(self, added, saved):
        folder = saved("bert")
        add(folder, *added)
        message = refusal(folder)
        assert f"has no place for {len(added)} of the file's tensors, such as {min(added)};" in message

    @pytest.mark.parametrize(
        ("family", "name"),
        [
            ("bert", "cls.predictions.transform.dense.gate"),
            ("roberta", "lm_head.decoder.gate"),
            ("gpt2", "lm_head.gate"),
            ("llama", "base_model.model.lm_head.gate"),
        ],
    )
    def test_one_within_the_head(self, family, name, tmp_path):
        folder = tiny.save_with_head(family, tmp_path / "mine")
        attnviz.load_model(str(folder))
        add(folder, name)
        assert f"for 1 of the file's tensors, such as {name};" in refusal(folder)

    @pytest.mark.parametrize(
        ("family", "name", "n_tensor"),
        [
            (
                "bert",
                "num_hidden_layers",
                16,
            ),  # four of attention, two dense, each with a bias, and two norms
            ("distilbert", "n_layers", 16),
            ("gpt2", "n_layer", 12),
            ("llama", "num_hidden_layers", 9),  # seven products and two norms, without biases
            ("t5", "num_layers", 8),  # four of attention, two dense and two norms
        ],
    )
    def test_a_layer_more_than_the_configuration_says(self, family, name, n_tensor, saved):
        folder = saved(family)
        change_config(folder, **{name: tiny.ENCODER_LAYERS - 1})
        message = refusal(folder)
        assert f"for {n_tensor} of the file's tensors, such as " in message
        assert re.search(r"such as (encoder\.)?\w+\.(layer\.)?2\.", message), message

    @pytest.mark.parametrize("family", ["mixtral", "nomic-bert"])
    def test_a_layer_more_in_names_of_the_file_that_are_not_the_model_s(self, family, saved):
        """Mixtral's experts lie one by one in a file; the layers of NomicBERT are called encoder.layers there, and layers in memory."""
        folder = saved(family)
        change_config(folder, num_hidden_layers=tiny.ENCODER_LAYERS - 1)
        assert re.search(r"for \d+ of the file's tensors, such as (encoder\.)?layers\.2\.", refusal(folder))

    def test_two_tensors_for_one_place(self, saved):
        folder = saved("bert")
        add(folder)
        name = "encoder.layer.1.output.LayerNorm"
        change_file(folder, lambda tensors: tensors.update({f"{name}.gamma": tensors[f"{name}.weight"] + 1}))
        assert f"1 of the tensors of mine, such as {name}." in refusal(folder)

    def test_one_whose_numbers_are_others_in_memory(self, saved, monkeypatch):
        """A fault of loading, which the reference shares with the model."""
        folder, read = saved("bert"), reading._read

        def wrong(loader, *args):
            network, info = read(loader, *args)
            network.get_parameter(f"{QUERY}.weight")[0, 1] += 1e-6
            return network, info

        monkeypatch.setattr(reading, "_read", wrong)
        assert f"1 of the tensors of mine, such as {QUERY}.weight, do not have the numbers" in refusal(folder)

    def test_a_converted_one_whose_numbers_are_others_in_memory(self, saved, monkeypatch):
        folder, read = saved("mixtral"), reading._read

        def wrong(loader, *args):
            network, info = read(loader, *args)
            next(
                parameter
                for name, parameter in network.named_parameters()
                if "experts" in name and parameter.ndim == 3
            )[1] += 1
            return network, info

        monkeypatch.setattr(reading, "_read", wrong)
        assert "of the tensors of mine, such as " in refusal(folder)

    def test_not_a_number_is_what_the_file_has(self, saved):
        folder = saved("bert")
        change_file(folder, lambda tensors: tensors[f"{QUERY}.weight"].view(-1)[:1].fill_(torch.nan))
        config = tf.AutoConfig.from_pretrained(folder)
        whole = tf.AutoModel.from_pretrained(folder)
        account = weights.account_for("mine", whole, weights.read_tensors(folder), config)
        assert account.n_used == account.n_tensor == len(names_in(folder))


QUANTIZED = {
    "float8_e4m3fn": lambda weight: {"weight": weight.to(torch.float8_e4m3fn)},
    "float8_e5m2": lambda weight: {"weight": weight.to(torch.float8_e5m2)},
    "int8": lambda weight: {"weight": (10 * weight).to(torch.int8)},
    "uint8": lambda weight: {
        "weight": torch.zeros(weight.numel() // 2, 1, dtype=torch.uint8)
    },  # two in a byte
    "int32": lambda weight: {"qweight": torch.zeros(2, 10, dtype=torch.int32)},
    "int64": lambda weight: {"weight": weight.to(torch.int64)},
    "bool": lambda weight: {"weight": weight > 0},
}
"""How files hold a weight of another kind of number, by its type."""


class TestOtherNumbers:
    """What a model does not compute with, with and without its scales."""

    @pytest.mark.parametrize(
        ("kind", "scales"),
        [
            *((kind, {}) for kind in QUANTIZED),
            ("float8_e4m3fn", {"weight_scale": torch.tensor(0.5)}),
            ("int8", {"SCB": torch.ones(10)}),
        ],
    )
    def test_are_refused_by_their_type(self, kind, scales, saved):
        folder = saved("bert")

        def quantize(tensors):
            held = QUANTIZED[kind](tensors.pop(f"{QUERY}.weight")) | scales
            tensors.update({f"{QUERY}.{name}": tensor for name, tensor in held.items()})

        change_file(folder, quantize)
        message = refusal(folder)
        assert re.search(rf"not plain numbers: 1 tensors .* such as {QUERY}.q?weight \({kind}\)", message), (
            message
        )
        assert "dequantise them" in message

    @pytest.mark.filterwarnings("ignore:Casting complex")
    def test_complex_ones_of_a_pickle(self, saved):
        folder = with_pickle_weights(saved("bert"))
        tensors = torch.load(folder / "pytorch_model.bin")
        tensors[f"{QUERY}.weight"] = tensors[f"{QUERY}.weight"].to(torch.complex64)
        torch.save(tensors, folder / "pytorch_model.bin")
        assert "(complex64)" in refusal(folder)

    @pytest.mark.parametrize("added", ["qzeros", "zero_point", "g_idx", "weight_shape", "perm"])
    def test_integers_beside_plain_weights(self, added, saved):
        folder = saved("bert")
        change_file(folder, lambda tensors: tensors.update({f"{QUERY}.{added}": torch.arange(3)}))
        assert f"such as {QUERY}.{added} (int64)" in refusal(folder)

    def test_integers_of_a_part_that_is_not_loaded_do_not_matter(self, saved):
        folder = saved("bert")
        change_file(folder, lambda tensors: tensors.update({"crf.allowed": torch.arange(3)}))
        assert attnviz.load_model(str(folder)).weights.account.parts == {"crf": 1}

    def test_of_eight_bytes_are_rounded_which_the_account_says(self, saved):
        folder = saved("bert")
        wide = torch.full((10, 10), 0.1, dtype=torch.float64)
        change_file(folder, lambda tensors: tensors.update({f"{QUERY}.weight": wide}))
        model = attnviz.load_model(str(folder))
        assert model.weights.account.rounded == {"float64 to float32": 1}
        account = str(model.weights.account)
        assert account.endswith("those of the file, rounded from float64 to float32 in 1 tensors.")
        assert model.network.get_parameter(f"{QUERY}.weight")[0, 0] == np.float32(0.1)

    @pytest.mark.parametrize(
        ("stored", "dtype", "types"),
        [
            (torch.float32, "bfloat16", "float32 to bfloat16"),
            (torch.bfloat16, "float16", "bfloat16 to float16"),
            (torch.bfloat16, "float32", None),
            (torch.float16, "float16", None),
        ],
    )
    def test_what_the_model_s_type_cannot_hold_is_said(self, stored, dtype, types, saved):
        folder = saved("bert")

        def store(tensors):
            tensors.update({name: tensor.to(stored) for name, tensor in tensors.items()})

        change_file(folder, store)
        account = attnviz.load_model(str(folder), dtype=dtype).weights.account
        assert account.rounded == ({} if types is None else {types: account.n_used})


class TestAdapters:
    @pytest.mark.parametrize(
        "names",
        [
            [f"{QUERY}.lora_A.default.weight", f"{QUERY}.lora_B.default.weight"],
            [f"bert.{QUERY}.lora_A.weight"],
            [f"base_model.model.bert.{QUERY}.lora_A.weight", f"base_model.model.{QUERY}.lora_B.weight"],
            [f"lora.{QUERY}.down"],
            ["lora_unet_encoder_layer_0.lora_up.weight"],
            [f"base_model.{QUERY}.ia3_l"],
            ["prompt_embeddings"],
            ["bert.prompt_encoder.weight"],
            ["prefix_encoder.embedding.weight"],
            ["adapters.english.encoder.layer.0.down.weight"],
            ["encoder.layer.1.output.adapters.english.adapter_up.weight"],
            [f"{QUERY}.hada_w1_a"],
            ["cls.predictions.decoder.lokr_w1"],
            [f"{QUERY}.boft_R.default", f"{QUERY}.oft_r.default", f"{QUERY}.vera_lambda_b.default"],
            [f"{QUERY}.base_layer.bias"],
            ["pooler.modules_to_save.default.dense.weight"],
        ],
        ids=lambda names: names[0],
    )
    def test_their_tensors_are_refused_wherever_they_are(self, names, saved):
        folder = saved("bert")
        add(folder, *names)
        message = refusal(folder)
        assert f"hold {len(names)} tensors of an adapter, such as {min(names)}," in message
        assert "merge_and_unload" in message

    def test_a_model_that_an_adapter_still_wraps(self, saved):
        """Its own weights have other names then, so that they are missing; this says why."""
        folder = saved("bert")

        def wrap(tensors):
            tensors[f"{QUERY}.base_layer.weight"] = tensors.pop(f"{QUERY}.weight")

        change_file(folder, wrap)
        assert f"hold 1 tensors of an adapter, such as {QUERY}.base_layer.weight," in refusal(folder)

    def test_a_part_that_the_class_has_is_none(self, saved):
        """ "Adapter" is also what X-MOD calls its languages, and one name of a classifier."""
        folder = saved("bert")
        add(folder, "classifier.out_proj.weight", "explorer.weight", "adaptive_pool.weight")
        assert set(attnviz.load_model(str(folder)).weights.account.parts) == {
            "classifier",
            "explorer",
            "adaptive_pool",
        }


class TestConstants:
    """What only looks like a constant is refused: by its shape, its numbers or its family."""

    @pytest.mark.parametrize(
        ("family", "name", "tensor", "message"),
        [
            ("gpt2", "h.0.attn.bias", torch.ones(1, 1, tiny.LIMIT, tiny.LIMIT), "1 constants, such as h.0.attn.bias,"),
            ("gpt2", "h.0.attn.bias", torch.ones(30), "1 constants, such as h.0.attn.bias,"),
            ("gpt2", "h.0.attn.bias", CAUSAL[None, None] * 0.5, "1 constants, such as h.0.attn.bias,"),
            ("gpt2", "h.0.attn.masked_bias", torch.tensor(0.1), "1 constants, such as h.0.attn.masked_bias,"),
            ("llama", "layers.0.self_attn.bias", CAUSAL[None, None], "no place for 1 "),
            ("llama", "layers.0.rotary_emb.inv_freq", FREQUENCIES * 1.001, "that are not those which config.json gives"),
            ("llama", "rotary_emb.inv_freq", 5e5 ** -(torch.arange(5) / 5), "rope_parameters"),
            ("llama", "rotary_emb.inv_freq", FREQUENCIES[:4], "1 constants"),
            ("gpt-neox", "layers.0.attention.rotary_emb.inv_freq", torch.tensor([2.0]).half(), "1 constants"),
            ("gpt2", "h.0.attn.rotary_emb.inv_freq", FREQUENCIES, "no place for 1 "),
            ("t5", CROSS_BIAS, torch.ones(8, 3), "1 constants"),
            ("t5", CROSS_BIAS.replace("block.0", "block.1"), torch.ones(8, tiny.HEADS), "no place for 1 "),
            ("bert", "encoder.version", torch.tensor([3.0]), "no place for 1 "),
            ("bart", "encoder.version", torch.ones(3), "1 constants"),
            ("bert", "embeddings.position_ids", torch.arange(5)[None] + 1, "1 constants"),
            ("bert", "embeddings.token_type_ids", torch.ones(1, 5, dtype=torch.int64), "1 constants"),
            ("bert", "encoder.layer.0.num_batches_tracked", torch.tensor(7), "(int64)"),
            ("deberta", "embeddings.position_embeddings.weight", torch.ones(tiny.LIMIT, 3), "1 constants"),
            ("bert", "encoder.layer.0.logit_scale", torch.tensor(2.0), "no place for 1 "),
        ],
    )  # fmt: skip
    def test_is_refused(self, family, name, tensor, message, saved):
        folder = saved(family)
        change_file(folder, lambda tensors: tensors.update({name: tensor}))
        assert message in refusal(folder)

    def test_frequencies_before_their_scaling_are_the_configuration_s_too(self, saved):
        """transformers before version 5 divided the positions, and left the frequencies in the file as they were."""
        folder = saved("llama")
        rope = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}
        change_config(folder, rope_parameters=rope)
        name = "layers.0.self_attn.rotary_emb.inv_freq"
        for written in (FREQUENCIES, FREQUENCIES / 4):
            change_file(folder, lambda tensors, written=written: tensors.update({name: written}))
            assert attnviz.load_model(str(folder)).weights.account.left_out == (name,)
        change_file(folder, lambda tensors: tensors.update({name: FREQUENCIES / 2}))
        assert name in refusal(folder)

    def test_layers_that_predict_tokens_farther_ahead(self, saved, monkeypatch):
        """transformers lists DeepSeek-V3's layer 61, the one after its last; in a model with more layers it is an ordinary one."""
        folder = saved("deepseek-v3")
        add(folder, "model.layers.61.mlp.weight")
        assert attnviz.load_model(str(folder)).weights.account.left_out == ("model.layers.61.mlp.weight",)
        add(folder, "model.layers.2.mlp.weight")
        monkeypatch.setattr(tf.DeepseekV3Model, "_keys_to_ignore_on_load_unexpected", [r"layers\.(2|61)\."])
        assert "no place for 1 " in refusal(folder)


RELATIVE = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "albert", "ernie", "esm")


class TestPositions:
    """transformers 5 reads relative positions (Shaw et al. 2018) as absolute ones, in the network and in the reference."""

    @pytest.mark.parametrize("kind", ["relative_key", "relative_key_query"])
    @pytest.mark.parametrize("family", RELATIVE)
    def test_relative_ones_are_refused_by_the_configuration_alone(self, family, kind, saved):
        folder = saved(family)
        change_config(folder, position_embedding_type=kind)
        with pytest.raises(UnsupportedArchitectureError) as caught:
            attnviz.load_model(str(folder))
        message = str(caught.value)
        assert "mine" in message and f"of the type {kind} (Shaw et al. 2018" in message
        assert "absolute positions." in message

    @pytest.mark.parametrize(
        ("family", "kind"),
        [("bert", "absolute"), ("esm", "rotary"), ("gte", "rope"), ("nomic-bert", "rotary")],
    )
    def test_those_that_the_class_computes_are_not(self, family, kind, saved):
        folder = saved(family)
        change_config(folder, position_embedding_type=kind)
        assert attnviz.load_model(str(folder)).weights.account.parts == {}

    def test_rotary_ones_are_refused_where_the_class_has_none(self, saved):
        folder = saved("bert")
        change_config(folder, position_embedding_type="rotary")
        with pytest.raises(
            UnsupportedArchitectureError,
            match="of the type rotary, which transformers does not compute for bert",
        ):
            attnviz.load_model(str(folder))


@dataclass
class Loaded:
    """A model, its file, and what its verification says."""

    model: attnviz.Model
    file: Path

    def check(self):
        report = attnviz.verify(self.model, self.model.trace(TEXT))
        assert report.checks[0].name == FILE
        assert report.passed is report.checks[0].passed
        return report.checks[0]


@pytest.fixture
def loaded(saved) -> Loaded:
    folder = saved("bert")
    return Loaded(attnviz.load_model(str(folder), is_mapped=False), weights_file(folder))


def replace_file(path: Path, content: bytes) -> None:
    """Puts another file in the place of this one."""
    other = path.with_suffix(".new")
    other.write_bytes(content)
    os.replace(other, path)


class TestVerification:
    def test_begins_with_the_file(self, loaded):
        check, n_tensor = loaded.check(), len(names_in(loaded.file.parent))
        assert check.passed
        assert check.reason.startswith(f"{n_tensor} of {n_tensor} used: ")
        assert (check.unit, check.difference, check.tolerance) == ("files", 0, 0)

    def test_a_file_that_was_changed_since_fails(self, loaded):
        digest = sha256(loaded.file.read_bytes()).hexdigest()
        change_file(loaded.file.parent, lambda tensors: tensors[f"{QUERY}.weight"].mul_(1.001))
        check = loaded.check()
        assert not check.passed
        assert check.difference == 1
        assert check.reason.startswith(
            "model.safetensors changed on disk after this model was loaded. Load it again"
        )
        assert loaded.model.weights_sha256 == {"model.safetensors": digest}  # of what was loaded

    def test_one_byte_more_that_keeps_size_and_time_of_another_file_fails(self, loaded):
        """A file in its place with the same size and time has another inode."""
        content, stat = bytearray(loaded.file.read_bytes()), loaded.file.stat()
        content[-1] ^= 1
        replace_file(loaded.file, bytes(content))
        os.utime(loaded.file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert not loaded.check().passed

    def test_a_mapped_file_that_was_written_in_place_fails(self, saved):
        """The numbers in memory are those of the file then too."""
        folder = saved("bert")
        loaded = Loaded(attnviz.load_model(str(folder)), weights_file(folder))
        with loaded.file.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))
        assert not loaded.check().passed

    def test_a_file_that_is_gone_fails(self, loaded):
        loaded.file.unlink()
        assert not loaded.check().passed

    def test_a_file_with_another_time_and_the_same_bytes_passes(self, loaded):
        os.utime(loaded.file, ns=(1, 1))
        assert loaded.check().passed
        replace_file(loaded.file, loaded.file.read_bytes())
        assert loaded.check().passed

    def test_a_file_that_is_put_back_passes_again(self, loaded):
        content = loaded.file.read_bytes()
        loaded.file.write_bytes(b"x" + content)
        assert not loaded.check().passed
        loaded.file.write_bytes(content)
        assert loaded.check().passed

    def test_bytes_are_read_only_where_the_stamp_is_another(self, loaded, monkeypatch):
        read, digest = [], weights.file_digest
        monkeypatch.setattr(weights, "file_digest", lambda *of: read.append(of) or digest(*of))
        trace = loaded.model.trace(TEXT)
        for _ in range(2):
            attnviz.verify(loaded.model, trace)
        assert len(read) == 0
        os.utime(loaded.file, ns=(1, 1))
        for _ in range(2):
            attnviz.verify(loaded.model, trace)
        assert len(read) == 1

    def test_a_file_that_is_written_while_it_is_read_is_refused(self, saved, monkeypatch):
        folder, load = saved("bert"), loading.load_network

        def slow(*args, **named):
            network = load(*args, **named)
            os.utime(weights_file(folder), ns=(1, 1))
            return network

        monkeypatch.setattr(loading, "load_network", slow)
        assert "The weights of mine were written while they were read" in refusal(folder)

    def test_a_trace_of_the_model_before_is_still_that_of_its_weights(self, loaded):
        before = loaded.model.trace(TEXT).weights(1, 1)
        loaded.file.unlink()
        np.testing.assert_array_equal(loaded.model.trace(TEXT).weights(1, 1), before)


class _Own(nn.Module):
    """A network with a parameter of its own, a part with parameters and one without."""

    def __init__(self) -> None:
        super().__init__()
        self.mask_emb = nn.Parameter(torch.zeros(2))
        self.layer = nn.ModuleList([nn.Linear(2, 2)])
        self.act = nn.GELU()


def test_parts_are_parameters_and_modules_of_the_top():
    assert weights._parts(_Own()) == {"mask_emb", "layer", "act"}


def test_a_name_that_a_family_s_renaming_would_change_needlessly_is_found(tiny_model, monkeypatch):
    """A pattern may match a name that is the model's already."""
    network = tiny_model("bert").network
    monkeypatch.setattr(weights, "rename_source_key", lambda key, *_: (f"old.{key}", "pattern"))
    names = weights._Names(network, network.config)
    key, tensor = next(iter(network.state_dict().items()))
    assert names.loaded(key, tensor).data_ptr() == tensor.data_ptr()
    assert names.loaded("nowhere", tensor) is None
