"""What a visitor sees until the page is there: its name, its question, what attnviz is for, and that it is loading."""

from html import escape
from pathlib import Path

from ui.part import Part, room_of

PURPOSE = (
    "attnviz shows where a language model's attention goes in your own sentence, head by head, "
    "and compares the weights of every head with the model's own."
)
_GOES = """
new MutationObserver((_, watcher) => {
  if (!document.querySelector(".stMain :is(h1, .stException, .stAlert)")) return;
  watcher.disconnect();
  document.getElementById("first_look").remove();
}).observe(document.body, { childList: true, subtree: true });
"""
_LOGO = Path(__file__).with_name("logo.svg").read_text(encoding="utf-8")


def first_look(page: Part) -> str:
    """HTML that covers the empty page and disappears once the heading is drawn."""
    room = room_of(page)
    row = "".join(f"<span>{escape(part.name)}</span>" for part in room.parts) if len(room.parts) > 1 else ""
    field = '<p class="field"></p>' if "sentence" in page.asks else ""
    return (
        f'<div id="first_look"><div class="menu">{_LOGO}</div><div class="page">{field}'
        f'<p class="head"><strong>{escape(room.name)}</strong>{row}<span>{escape(page.question)}</span></p>'
        f"<p>{escape(PURPOSE)}</p>"
        '<p class="waits" role="status">Loading the page. Right after a start of the server the model is loaded first, '
        "which takes a few seconds.</p>"
        f"</div></div><script>{_GOES}</script>"
        + "<noscript><style>#first_look { display: none }</style></noscript>"
    )
