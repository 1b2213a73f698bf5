"""A model in memory is traced and verified, and is afterwards what it was before."""

import functools

import peft
import pytest
import torch
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MPNetConfig,
    MPNetModel,
    T5Config,
    T5ForConditionalGeneration,
)

import attnviz
from attnviz.records import FILE

pytestmark = pytest.mark.filterwarnings(
    "ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"
)  # peft 0.21.2

TEXT = "I was watching the door when it opened."
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 48, "intermediate_size": 64}


@pytest.fixture(scope="module")
def tokenizer(embedded):
    return embedded.tokenizer


def made(family, config, **settings):
    torch.manual_seed(0)
    return family(config(vocab_size=30522, **settings)).eval()


class Mine(BertModel):
    """A class that stands where transformers does not look."""


FAMILIES = {
    "bert": lambda: made(BertModel, BertConfig, **SIZES),
    "of one's own": lambda: made(Mine, BertConfig, **SIZES),
    "with a language head": lambda: made(BertForMaskedLM, BertConfig, **SIZES),
    "with a classifier": lambda: made(BertForSequenceClassification, BertConfig, **SIZES),
    "mpnet": lambda: made(MPNetModel, MPNetConfig, **SIZES),
    "gpt2": lambda: made(GPT2LMHeadModel, GPT2Config, n_embd=32, n_layer=2, n_head=4),
    "llama": lambda: made(LlamaForCausalLM, LlamaConfig, num_key_value_heads=2, **SIZES),
    "bfloat16": lambda: made(BertModel, BertConfig, **SIZES).bfloat16(),
    "in training": lambda: made(BertModel, BertConfig, **SIZES).train(),
    "compiled": lambda: torch.compile(made(BertModel, BertConfig, **SIZES), backend="eager"),
    "in parallel": lambda: nn.DataParallel(made(BertModel, BertConfig, **SIZES)),
}


def network_of(model):
    return getattr(model, "_orig_mod", getattr(model, "module", model))


def state(model):
    """All that must not change: where numbers are, whether they learn, how often they were written; modes, hooks, attention."""
    return (
        {
            name: (tensor.data_ptr(), tensor.requires_grad, tensor._version)
            for name, tensor in (*model.named_parameters(), *model.named_buffers())
        },
        {
            name: (type(module), module.training, tuple(map(id, module._forward_hooks.values())))
            for name, module in model.named_modules()
        },
        network_of(model).config._attn_implementation,
    )


def output(model, tokenizer):
    with torch.no_grad():
        return model(**tokenizer(TEXT, return_tensors="pt", return_token_type_ids=False))[0]


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of torch.compile itself
@pytest.mark.parametrize("family", FAMILIES)
def test_its_numbers_are_checked_and_it_stays_as_it_was(family, tokenizer):
    model = FAMILIES[family]()
    before = state(model)
    is_sure = not network_of(model).training  # dropout draws anew with each pass
    expected = output(model, tokenizer) if is_sure else None
    viz = attnviz.wrap(model, tokenizer, name="mine")
    trace = viz.trace(TEXT)
    report = attnviz.verify(viz, trace)
    assert report.passed
    assert report.not_compared[FILE] == "It is a live model: no files compared."
    assert trace.provenance.revision == "live model" and trace.provenance.model == "mine"
    assert state(model) == before
    if is_sure:
        assert torch.equal(output(model, tokenizer), expected)
    if is_sure and expected.shape[-1] == trace.last_hidden_state.shape[-1]:
        rounding = 0.02 if expected.dtype == torch.bfloat16 else 1e-5
        states = torch.tensor(trace.last_hidden_state)
        torch.testing.assert_close(states, expected[0].float(), atol=rounding, rtol=rounding)


@pytest.mark.parametrize(
    ("family", "config"), [(T5ForConditionalGeneration, T5Config), (BartForConditionalGeneration, BartConfig)]
)
def test_of_an_encoder_and_a_decoder_both_and_what_is_across_are_traced(family, config, tokenizer):
    sizes = (
        {"d_kv": 8, "num_layers": 2, "num_heads": 4, "d_ff": 32}
        if config is T5Config
        else {
            f"{half}_{what}": number
            for half in ("encoder", "decoder")
            for what, number in {"layers": 2, "attention_heads": 4, "ffn_dim": 32}.items()
        }
    )
    viz = attnviz.wrap(made(family, config, d_model=32, decoder_start_token_id=0, **sizes), tokenizer)
    trace = viz.trace(TEXT, "It opened.")
    assert trace.kinds == ("encoder", "decoder", "cross")
    assert attnviz.verify(viz, trace).passed


def test_answers_are_those_of_the_whole_model(tokenizer):
    model = FAMILIES["with a language head"]()
    viz = attnviz.wrap(model, tokenizer)
    found = attnviz.predict(viz, viz.trace(TEXT), 3, top=4)
    best = output(model, tokenizer)[0, 3].softmax(-1).topk(4)
    assert found.ids.tolist() == best.indices.tolist()
    torch.testing.assert_close(torch.tensor(found.probabilities), best.values)


def test_hooks_of_others_run_as_they_do_in_the_model(tokenizer):
    model = FAMILIES["bert"]()
    model.encoder.layer[0].register_forward_hook(lambda module, given, made: made * 1.5)
    viz = attnviz.wrap(model, tokenizer)
    torch.testing.assert_close(
        torch.tensor(viz.trace(TEXT).last_hidden_state), output(model, tokenizer)[0], atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize(
    "settings", [{}, {"use_dora": True}, {"lora_bias": True}], ids=["lora", "dora", "bias"]
)
@pytest.mark.parametrize("is_inside", [False, True], ids=["PeftModel", "add_adapter"])
def test_an_adapter_of_peft_counts(settings, is_inside, tokenizer):
    """Its output, and the W_O that it changes, which norm-based weights read."""
    model = FAMILIES["bert"]()
    plain = output(model, tokenizer)
    adapter = peft.LoraConfig(
        r=4, target_modules=["query", "value", "dense"], init_lora_weights=False, **settings
    )
    adapted = model if is_inside else peft.get_peft_model(model, adapter)
    if is_inside:
        model.add_adapter(adapter)
    adapted.eval()
    before, expected = state(model), output(adapted, tokenizer)
    numbers = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert not torch.allclose(plain, expected, atol=1e-2)
    viz = attnviz.wrap(adapted, tokenizer)
    trace = viz.trace(TEXT)
    torch.testing.assert_close(torch.tensor(trace.last_hidden_state), expected[0], atol=1e-4, rtol=1e-4)
    assert "norms" in trace.measures() and attnviz.verify(viz, trace).passed
    assert state(model) == before
    assert all(torch.equal(tensor, numbers[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    "switch",
    [
        lambda adapted: adapted.merge_adapter(),
        lambda adapted: adapted.base_model.disable_adapter_layers(),
    ],
)
def test_after_an_adapter_is_switched_no_number_of_before_is_shown(switch, tokenizer):
    adapter = peft.LoraConfig(r=4, target_modules=["query"], init_lora_weights=False)
    adapted = peft.get_peft_model(FAMILIES["bert"](), adapter).eval()
    viz = attnviz.wrap(adapted, tokenizer)
    switch(adapted)
    with pytest.raises(attnviz.ModelFailedError, match=r"have changed since attnviz\.wrap"):
        viz.trace(TEXT)


@pytest.mark.filterwarnings("ignore")  # torch 2.13 advises another package of quantisation
def test_a_quantised_model_is_traced_without_what_needs_its_matrices(tokenizer):
    model = torch.ao.quantization.quantize_dynamic(FAMILIES["bert"](), {nn.Linear}, dtype=torch.qint8)
    viz = attnviz.wrap(model, tokenizer)
    report = attnviz.verify(viz, viz.trace(TEXT))
    assert report.passed and "norm-based weights" in report.not_compared


@pytest.mark.parametrize(
    "train",
    [
        lambda parameter: parameter.detach().add_(0.1),
        lambda parameter: setattr(parameter, "data", parameter.data + 0.1),
        lambda parameter: parameter.data.mul_(1.1),
    ],
)
def test_after_a_step_of_training_no_number_of_before_is_shown(train, tokenizer):
    model = FAMILIES["bert"]()
    viz = attnviz.wrap(model, tokenizer)
    trace = viz.trace(TEXT)
    train(model.encoder.layer[1].attention.self.query.weight)
    for again in (functools.partial(viz.trace, TEXT), functools.partial(attnviz.verify, viz, trace)):
        with pytest.raises(attnviz.ModelFailedError, match=r"have changed since attnviz\.wrap"):
            again()
    later = attnviz.wrap(model, tokenizer)
    assert attnviz.verify(later, later.trace(TEXT)).passed


def test_tensors_that_a_forward_left_behind_do_not_matter(tokenizer):
    model = FAMILIES["bert"]()
    model.last = model.embeddings(torch.tensor([[1, 2]]))  # no leaf: deepcopy refuses it
    assert attnviz.wrap(model, tokenizer).trace(TEXT)


def prompt_tuned():
    settings = peft.PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=4)
    return peft.get_peft_model(FAMILIES["with a classifier"](), settings)


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (
            lambda: nn.Linear(2, 2),
            attnviz.ArgumentError,
            "given a Linear as model; it takes a PreTrainedModel",
        ),
        (
            lambda: "bert-base-uncased",
            attnviz.ArgumentError,
            "given the text “bert-base-uncased” as model; it takes a Module",
        ),
        (prompt_tuned, attnviz.UnsupportedArchitectureError, "columns that are no tokens"),
        (lambda: FAMILIES["bert"]().to("meta"), attnviz.ModelNotAvailableError, "not in memory"),
    ],
)
def test_what_cannot_be_wrapped_says_why(model, error, words, tokenizer):
    with pytest.raises(error, match=words):
        attnviz.wrap(model(), tokenizer)


def test_numbers_that_are_none_are_refused(tokenizer):
    model = FAMILIES["bert"]()
    model.encoder.layer[0].attention.self.query.weight.data[3, 3] = float("nan")
    with pytest.raises(attnviz.ModelNotAvailableError, match="holds NaN or infinity"):
        attnviz.wrap(model, tokenizer)


def test_load_model_points_to_it(tokenizer):
    with pytest.raises(attnviz.ArgumentError, match=r"attnviz.wrap\(model, tokenizer\) takes a model"):
        attnviz.load_model(FAMILIES["bert"](), tokenizer)
