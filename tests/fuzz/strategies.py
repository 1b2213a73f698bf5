"""What anybody may type, put into a link, upload or send."""

import random

from hypothesis import strategies as st

from ui.choice.fields import Word
from ui.choice.selection import FIELDS

MARKUP = (
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "<b>",
    "&lt;",
    "$x^2$",
    "$$",
    "%{x}",
    "**bold**",
    "[a](javascript:1)",
    "`",
    ":red[x]",
    ":material/home:",
    "[MASK]",
    "[SEP]",
    "[CLS]",
    "[PAD]",
    "##ing",
    "=1+1",
    "\0",
    "\u202e",
    "\ufeff",
    "\u2028",
    "e\u0301" * 9,
    "👩‍👩‍👧‍👦",
    "הדלת",
    "中国",
    "\r\n",
)
words = st.sampled_from(("the", "door", "opened", "it", "unbelievable", ".", "?"))
texts = st.lists(st.text(max_size=12) | words | st.sampled_from(MARKUP), min_size=1, max_size=12).map(
    " ".join
)
"""Any text, of words that a model knows, of markup, and of anything else."""

_numbers = (
    st.integers(-3, 1200)
    | st.integers()
    | st.floats()
    | st.sampled_from(("", "nan", "1e400", "0x1", "٣", "1_0"))
)
_lists = st.lists(st.integers(-1, 40) | st.text(max_size=3), max_size=9).map(
    lambda some: ",".join(map(str, some))
)
_cells = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=9).map(
    lambda some: ",".join(f"{first}.{second}" for first, second in some)
)


def value_of(name: str) -> st.SearchStrategy[str]:
    """What a link may give a field: what it can hold, and what it cannot."""
    holds = FIELDS[name]
    good = st.sampled_from(holds.options) if isinstance(holds, Word) else _numbers.map(str)
    return good | (_numbers | _lists | _cells | texts).map(str)


links = st.lists(st.sampled_from(sorted(FIELDS)), max_size=8, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: value_of(name) for name in names})
)
"""Query strings: names that a link has, with any value."""

randoms = st.integers(0, 2**32 - 1).map(random.Random)
"""Sources of random choices among what is there only once a page is open."""
