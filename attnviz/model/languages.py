"""The languages of a translation model's tokenizer, which mark its texts: mBART, NLLB, M2M-100.

A tokenizer stores the language of its next text as its own state, so that it is set for every text.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.errors import SelectionError

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedTokenizerBase

_MOST_NAMED = 8
"""Most languages that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """The languages of a tokenizer, and those that mark texts by default."""

    codes: tuple[str, ...]
    """As the tokenizer writes them: "fr_XX", "fra_Latn", "fr"."""
    source: str
    target: str

    @classmethod
    def of(cls, tokenizer: "PreTrainedTokenizerBase", generation: "GenerationConfig") -> "Languages | None":
        """The languages of a tokenizer fresh from its folder; None where its texts have none.

        Args:
            generation: settings of ``generate``; the language that it writes unasked is the default of targets.
        """
        if not hasattr(tokenizer, "set_src_lang_special_tokens"):
            return None
        named = {str(token) for token in tokenizer.special_tokens_map.values() if isinstance(token, str)}
        ids: dict[str, int] = getattr(tokenizer, "lang_code_to_id", None) or {
            token: tokenizer.convert_tokens_to_ids(token)
            for token in tokenizer.all_special_tokens
            if token not in named  # NLLB's
        }
        source = str(tokenizer.src_lang)
        starts = [
            getattr(generation, name, None) for name in ("decoder_start_token_id", "forced_bos_token_id")
        ]
        written = (code for start in starts for code, number in ids.items() if number == start)
        target = next(written, tokenizer.tgt_lang or source)
        return cls(codes=tuple(map(str, ids)), source=source, target=str(target))

    def tell(self, tokenizer: "PreTrainedTokenizerBase", language: str | None, *, is_target: bool) -> str:
        """Sets, and returns, the language that marks the tokenizer's next text; the tokenizer's default for None.

        Raises:
            SelectionError: the tokenizer does not have the language.
        """
        told = language or (self.target if is_target else self.source)
        if told not in self.codes:
            named = ", ".join(self.codes[:_MOST_NAMED]) + " and more" * (len(self.codes) > _MOST_NAMED)
            raise SelectionError(
                f"The language {told!r} was asked for; the tokenizer has {named}. Select one of its languages."
            )
        setattr(tokenizer, "tgt_lang" if is_target else "src_lang", told)
        return told
