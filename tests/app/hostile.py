"""A model whose vocabulary holds tokens that Markdown, HTML, Plotly or Streamlit would read as markup."""

from pathlib import Path

from tokenizers import AddedToken
from transformers import AutoTokenizer, BertModel

from tests.hub import save_tiny_bert

TOKENS = (
    "<script>document.title='hacked'</script>",
    "<b>",
    "<img src=x onerror=document.title='hacked'>",
    "<a href='https://example.org'>",
    "&lt;i&gt;",
    "$x^2$",
    "%{x}",
    "**bold**",
    "[link](https://example.org)",
    "`code`",
    ":smile:",
    ":red[x]",
    ":material/home:",
    "~~gone~~",
)
ALL_IN_ONE = "".join(TOKENS)
"""One token that holds all of them, for pages that are tried once."""
LABELS = tuple(token.replace(" ", "␣") for token in TOKENS)
"""What each token is called: a space in it is shown."""
TEXT = "the " + " ".join(TOKENS) + " door"


def save_hostile_bert(folder: Path) -> Path:
    """A random BERT that has each of `TOKENS`, and `ALL_IN_ONE`, as one entry of its vocabulary."""
    folder.mkdir(parents=True)
    save_tiny_bert(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in (*TOKENS, ALL_IN_ONE)])
    tokenizer.save_pretrained(folder)
    model = BertModel.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(folder)
    return folder
