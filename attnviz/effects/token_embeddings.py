"""The network as a differentiable function of its token embeddings, and the embeddings that stand for no token."""

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.model.capture import forward, share_parameters
from attnviz.model.structure import looked_up_by
from attnviz.model.variants import OutcomeMeasure
from attnviz.records import Tokens

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

Baseline = Literal["padding", "end", "mask", "zeros"]
"""What stands for no token: the vector of the padding token, of the end token (BERT's [SEP]), of the mask token, or zeros."""

BASELINES: tuple[Baseline, ...] = get_args(Baseline)
"""In the order of preference where none is chosen.

Measured on the bundled model, 24 sentences, similarity with the next: the effect of replacing one token, compared with
deleting it from the text. Mean rank correlation and mean absolute difference are 0.82 and 0.013 for the padding
token, 0.89 and 0.012 for the end token, 0.78 and 0.042 for the mask token, 0.79 and 0.031 for zeros. Integrated gradients
from these baselines rank tokens as deleting them does with 0.69, 0.59, 0.43 and 0.44.

Measured on SmolLM2-135M-Instruct, log-odds of " Mary" against " John" after "When Mary and John went to the store, John gave a
drink to": on the way from the padding token the outcome goes up and down by 21 in all between 65 even points, from two other
special tokens by 19 and 23, from " the" by 24, from the mean of the vocabulary by 22 and from zeros by 19. After 330 points at
which a quadrature was most wrong, its panels are off by 1.1 in all from the padding token, 0.7 and 0.9 from the two others, 1.5
from the mean of the vocabulary, and 62 from zeros, where the derivative reaches 1e15: the first norm scales every vector to the
same length, however short. So one token does as well as another, the mean of the vocabulary is no better, and zeros come last.
"""

SHORTEST = 0.1
"""Share of the mean length of the table's vectors; a shorter vector is the baseline only if it is chosen. torch never trains
a padding token's vector, which may be 0; families with a norm right after the lookup read a vector near 0 like a long one,
so that the outcome jumps at the end of a path. Measured on tiny models of gpt-neox, llama, gemma and qwen3,
the gap of integrated gradients from zeros after 256 steps is 0.25 to 0.35, and from the end token below 1e-6."""


def removable(model: "Model", tokens: Tokens) -> Bool[np.ndarray, " token"]:
    """True for tokens that may be removed: neither special tokens nor the mask token, which already stands for no word."""
    return np.asarray(~tokens.is_special & (tokens.ids != model.tokenizer.mask_token_id))


class EmbeddedText:
    """A text as the vectors from the family's token embedding table, and the reference's run on other vectors.

    The vectors are replaced where they leave the table, so that whatever the family does before and after the lookup
    (position ids, factors, norms) is its own. Of an encoder-decoder model they are the encoder's; the decoder's text
    stays.

    Args:
        trace: of the text without interventions.
        baseline: what stands for no token; None for the first of `BASELINES` that the model has.

    Raises:
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
        SelectionError: a trace with interventions, or a baseline that the model does not have.
        UnsupportedArchitectureError: no embedding table is looked up by the tokens.
    """

    def __init__(self, model: "Model", trace: "Trace", baseline: Baseline | None = None) -> None:
        if trace.interventions:
            raise SelectionError(
                f"A trace with an intervention ({trace.interventions[0]}) was to be attributed to its tokens; attributions "
                "are of the model's own run. Trace the text without interventions."
            )
        self.tokens = trace.tokens
        self._inputs = model.inputs(trace.tokens, trace.target_tokens)
        self._network = share_parameters(model.reference)  # a copy, so that no other thread runs its hooks
        self._given: Tensor | None = None
        self._table: nn.Embedding | None = None
        self._is_replaced = True
        for module in self._network.modules():
            if isinstance(module, nn.Embedding):
                module.register_forward_hook(self._replace)
        self.vectors = self._look_up()
        self.baseline_label, self.baseline = self._make_baseline(model, baseline)

    def states(
        self, vectors: Float[Tensor, "variant token d_embedding"]
    ) -> Float[Tensor, "variant state d_model"]:
        """The last hidden states of the family's own run on these vectors, a decoder's where it has one; differentiable."""
        self._given, self._is_replaced = vectors, False
        n_row = len(vectors)
        inputs = {
            name: value.expand(n_row, *value.shape[1:]) if isinstance(value, Tensor) else value
            for name, value in self._inputs.items()
        }
        states: Tensor = forward(self._network, **inputs).last_hidden_state
        return states

    def outcomes(
        self, measure: OutcomeMeasure, vectors: Float[Tensor, "variant token d_embedding"]
    ) -> Float[Tensor, " variant"]:
        """An outcome of the run on these vectors; differentiable."""
        return measure(self.states(vectors).float())

    def without(
        self, removed: Bool[np.ndarray, "variant token"]
    ) -> Float[Tensor, "variant token d_embedding"]:
        """The text's vectors, with the baseline's for the tokens that are removed."""
        is_removed = torch.tensor(removed, device=self.vectors.device)
        return torch.where(is_removed[..., None], self.baseline, self.vectors)

    def _look_up(self) -> Float[Tensor, "token d_embedding"]:
        with torch.no_grad():  # what a family keeps of this run may be differentiated later
            self._is_replaced = False
            forward(self._network, **self._inputs)
        if self._table is None:
            raise UnsupportedArchitectureError(
                f"The embeddings of the tokens were asked for; {type(self._network).__name__} looks up no table by the "
                "tokens' ids. Select a model such as BERT."
            )
        with torch.no_grad():
            vectors: Tensor = self._table(self._inputs["input_ids"])[0]
        return vectors

    def _make_baseline(
        self, model: "Model", asked: Baseline | None
    ) -> tuple[str, Float[Tensor, "token d_embedding"]]:
        """The baseline's label, and the text's vectors with the baseline's for all tokens that may be removed."""
        assert self._table is not None
        tokenizer, weight = model.tokenizer, self._table.get_parameter("weight")
        ids = {
            "padding": tokenizer.pad_token_id,
            "end": _end_of_text(model),
            "mask": tokenizer.mask_token_id,
        }
        least = SHORTEST * float(weight.detach().float().norm(dim=1).mean())
        label, nothing = "zeros", torch.zeros_like(self.vectors[0])
        for name in BASELINES if asked is None else (asked,):
            number = ids.get(name)
            if number is None or number >= self._table.num_embeddings:
                continue
            with torch.no_grad():
                vector = self._table(torch.tensor([number], device=self.vectors.device))[0]
            if asked is not None or float(weight[number].detach().float().norm()) >= least:
                label, nothing = str(tokenizer.convert_ids_to_tokens(number)), vector
                break
        if asked not in (None, "zeros") and label == "zeros":
            raise SelectionError(
                f"The baseline {asked!r} was asked for; {model.name} has no such token. Select another of "
                f"{', '.join(BASELINES)}."
            )
        is_removed = torch.tensor(removable(model, self.tokens), device=self.vectors.device)
        return label, torch.where(is_removed[:, None], nothing, self.vectors)

    def _replace(self, module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor | None:
        """A hook: the vectors of the current run, at the first lookup by the tokens' ids."""
        if self._is_replaced or not isinstance(module, nn.Embedding):
            return None
        if not self._is_of_tokens(module, inputs[0]):
            return None
        self._is_replaced = True
        if self._given is None:
            self._table = module
            return None
        return self._given

    def _is_of_tokens(self, module: nn.Embedding, asked: Any) -> bool:
        if self._table is not None:
            return module is self._table
        return looked_up_by(asked, self.tokens.ids)


def _end_of_text(model: "Model") -> int | None:
    """The end token of the tokenizer, or of the configuration, which may list several."""
    tokenizer = model.tokenizer
    given = (
        tokenizer.eos_token_id,
        tokenizer.sep_token_id,
        getattr(model.network.config, "eos_token_id", None),
    )
    for ids in given:
        if isinstance(ids, int):
            return ids
        if isinstance(ids, list) and ids:
            return int(ids[0])
    return None
