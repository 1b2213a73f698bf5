"""What the model would answer if it stopped after each layer: the logit lens, of every token, or of chosen answers at one token.

The state that each layer leaves is sent through the family's final norm, where it has one, and the model's own language
head. The model was trained to read only its last layer in this way: an early layer's answer says what its state has in
common with the last layer's, not what the layer "thinks". Without a language head there is no lens, only the similarity
of each layer's state to the last, which is attnviz's own (`LayerSimilarities`).

Source: nostalgebraist 2020, "interpreting GPT: the logit lens", for the lens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from attnviz.arguments import typed
from attnviz.errors import SelectionError, enough_memory
from attnviz.maths.directions import cosine_changes
from attnviz.model.answers import language_head, token_id, token_logits
from attnviz.model.model import Model
from attnviz.model.stream import record_stream
from attnviz.model.token_labels import labels_of
from attnviz.model.trace import Trace
from attnviz.records import Axis, Kind, Record, Result, Tokens
from attnviz.records.table import Table, entry_names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lens(Result):
    """The most likely tokens after each layer, for every token of a text, most likely first.

    A masked language model predicts the token at the position, a causal model the next token.
    """

    kind: Kind
    tokens: Tokens
    """The text at whose tokens the answers are."""
    ids: Int[np.ndarray, "layer token top"]
    labels: tuple[tuple[tuple[str, ...], ...], ...]
    """Labels of these tokens: by layer, by token of the text, most likely first."""
    probabilities: Float[np.ndarray, "layer token top"]
    """Probabilities of these tokens: the softmax over the whole vocabulary."""
    answers: tuple[str, ...]
    """The model's own most likely token for every token of the text: that of the last layer."""
    answer_probabilities: Float[np.ndarray, "layer token"]
    """Probability of that token after each layer."""
    answer_ranks: Int[np.ndarray, "layer token"]
    """Number of tokens with a larger logit than that token after each layer: 0 where it is the most likely."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        n_layer, n_token, _ = self.ids.shape
        if not (
            len(self.labels) == n_layer
            and {len(label) for label in self.labels}
            == {len(self.answers)}
            == {len(self.tokens)}
            == {n_token}
        ):
            raise self._unfit(
                f"{n_layer} layers and {n_token} tokens, but labels of {len(self.labels)} and {len(self.answers)}"
            )

    @property
    def settled(self) -> Int[np.ndarray, " token"]:
        """The first layer from which on the model's own answer is the most likely one, for every token."""
        is_first = self.answer_ranks[::-1] == 0
        return np.asarray(len(is_first) - np.cumprod(is_first, axis=0).sum(axis=0), dtype=np.int64)

    def _table(self) -> Table:
        """A row for every layer and token: the most likely token there, and the model's own answer."""
        header = [
            "layer",
            "position",
            "token",
            "most likely",
            "probability",
            "answer",
            "answer probability",
            "answer rank",
        ]
        names = entry_names(Axis.of(self.tokens))
        rows = [
            [
                layer,
                token,
                names[token],
                self.labels[layer][token][0],
                self.probabilities[layer, token, 0],
                answer,
                self.answer_probabilities[layer, token],
                self.answer_ranks[layer, token],
            ]
            for layer in range(len(self.ids))
            for token, answer in enumerate(self.answers)
        ]
        return header, rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FollowedTokens(Result):
    """How likely chosen tokens are after each layer, at one token of a text."""

    kind: Kind
    position: int
    labels: tuple[str, ...]
    """Labels of the chosen tokens."""
    logits: Float[np.ndarray, "layer chosen"]
    probabilities: Float[np.ndarray, "layer chosen"]
    """The softmax over the whole vocabulary."""
    ranks: Int[np.ndarray, "layer chosen"]
    """1 for the most likely token: 1 + the number of tokens with a larger logit."""

    @property
    def differences(self) -> Float[np.ndarray, " layer"] | None:
        """The logit of the first token minus that of the second; None for one token."""
        return None if len(self.labels) < 2 else np.asarray(self.logits[:, 0] - self.logits[:, 1])

    def _table(self) -> Table:
        """A row for every layer and chosen token."""
        rows = [
            [
                layer,
                label,
                *(float(table[layer, at]) for table in (self.logits, self.probabilities)),
                self.ranks[layer, at],
            ]
            for layer in range(len(self.logits))
            for at, label in enumerate(self.labels)
        ]
        return ["layer", "answer", "logit", "probability", "rank"], rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerSimilarities(Result):
    """How similar the state of each token is to its last hidden state, after each layer."""

    kind: Kind
    tokens: Tokens
    similarities: Float[np.ndarray, "layer token"]
    """Cosine of the state after each layer, sent through the family's final norm, and the last hidden state; 1 in the last
    layer."""

    def _table(self) -> Table:
        """A row for every layer and token."""
        names = entry_names(Axis.of(self.tokens))
        rows = [
            [layer, token, names[token], number]
            for (layer, token), number in np.ndenumerate(self.similarities)
        ]
        return ["layer", "position", "token", "similarity"], rows


@typed
def lens(model: Model, trace: Trace, *, top: int = 5) -> Lens:
    """What the model would answer after each layer, for every token of a text.

    Args:
        trace: of the text without interventions.
        top: number of tokens, at most the whole vocabulary.

    Raises:
        OutOfMemoryError: the text is too long for the memory that is left.
        SelectionError: a trace with interventions, or fewer than one token asked for.
        UnsupportedArchitectureError: no language head, or a final norm that attnviz does not know.
    """
    language_head(model, "the answer after each layer")
    if top < 1:
        raise SelectionError(f"The {top} most likely tokens were asked for. Ask for one or more.")
    stream = record_stream(model, trace, 0)
    ids, probabilities, answers, ranks = [], [], [], []
    final: torch.Tensor | None = None
    with enough_memory(), torch.inference_mode():
        for states in stream.states[::-1]:  # the model's own answer first
            given = torch.tensor(states).to(model.network.device, model.network.dtype)[None]
            logits = token_logits(model, stream.last_hidden(given)[0]).float().cpu()  # [token, vocabulary]
            top_answers = logits.topk(min(top, logits.shape[-1]))
            final = top_answers.indices[:, :1] if final is None else final
            normaliser = logits.logsumexp(dim=-1, keepdim=True)
            answer = logits.gather(1, final)
            ids.append(top_answers.indices.numpy())
            probabilities.append((top_answers.values - normaliser).exp().numpy())
            answers.append((answer - normaliser).exp()[:, 0].numpy())
            ranks.append((logits > answer).sum(dim=-1).numpy())
    distinct = np.unique(np.stack(ids)).tolist()
    named = dict(zip(distinct, labels_of(model.tokenizer, distinct), strict=True))
    labels = [tuple(tuple(named[number] for number in row) for row in layer.tolist()) for layer in ids]
    return Lens(
        kind=stream.kind,
        tokens=trace.last_tokens,
        ids=np.stack(ids[::-1]),
        labels=tuple(labels[::-1]),
        probabilities=np.stack(probabilities[::-1]),
        answers=tuple(row[0] for row in labels[0]),
        answer_probabilities=np.stack(answers[::-1]),
        answer_ranks=np.stack(ranks[::-1]),
    )


@typed
def follow_tokens(model: Model, trace: Trace, position: int, tokens: Sequence[str]) -> FollowedTokens:
    """How likely some tokens are after each layer, predicted at a position of a trace.

    Args:
        trace: of the text without interventions.
        tokens: as `attnviz.model.answers.token_id`, one or more.

    Raises:
        SelectionError: no such position or token, or no token at all; also as `lens`.
        OutOfMemoryError, UnsupportedArchitectureError: as `lens`.
    """
    language_head(model, "how likely tokens are after each layer")
    ids = [token_id(model, token) for token in tokens]
    if not ids:
        raise SelectionError(
            "Tokens were to be followed through the layers; none is named. Name one or more."
        )
    stream = record_stream(model, trace, position)
    with enough_memory(), torch.inference_mode():
        given = torch.tensor(stream.states[:, position]).to(model.network.device, model.network.dtype)
        last = stream.last_hidden(given[:, None])[:, 0]
        logits = token_logits(model, last).float().cpu()  # [layer, vocabulary]
        chosen = logits[:, ids]
        probabilities = (chosen - logits.logsumexp(dim=-1, keepdim=True)).exp()
        ranks = torch.stack([1 + (logits > own[:, None]).sum(dim=-1) for own in chosen.unbind(dim=1)], dim=1)
    return FollowedTokens(
        kind=stream.kind,
        position=position,
        labels=labels_of(model.tokenizer, ids),
        logits=chosen.numpy(),
        probabilities=probabilities.numpy(),
        ranks=ranks.numpy(),
    )


@typed
def layer_similarities(model: Model, trace: Trace) -> LayerSimilarities:
    """How similar the state of each token after each layer is to its last hidden state; needs no language head.

    Args:
        trace: of the text without interventions. Of an encoder-decoder model the decoder's tokens are compared.

    Raises:
        As `lens`, but no language head is needed.
    """
    stream = record_stream(model, trace, 0)
    with enough_memory(), torch.inference_mode():
        given = torch.tensor(stream.states).to(model.network.device, model.network.dtype)
        states = stream.last_hidden(given).float().cpu()  # [layer, token, d_model]
        last = torch.tensor(trace.last_hidden_state).expand_as(states)
    turned = cosine_changes(states.flatten(0, 1).numpy(), last.flatten(0, 1).numpy())
    similarities = (1 - turned).astype(np.float32).reshape(states.shape[:2])
    return LayerSimilarities(kind=stream.kind, tokens=trace.last_tokens, similarities=similarities)
