"""What a page says of a bundle that was opened on it."""

from streamlit.testing.v1 import AppTest

from tests.app.screen import unescaped
from ui.page.verdict import RECORDED as RECORDED


def captions(at: AppTest) -> list[str]:
    """Each of the small texts."""
    return [unescaped(one.value) for one in at.caption]


def banner(at: AppTest) -> str:
    """What the line with the icon of a bundle says; nothing where the page shows no bundle."""
    icon = ":material/folder_zip:"
    return "".join(line.removeprefix(icon) for line in captions(at) if line.startswith(icon))


def verdict(at: AppTest) -> str:
    """What the link to the Verification page says, beside the finding or at the sidebar's end."""
    labels = [one.proto.label for one in at.get("page_link") if one.proto.page.endswith("verification")]
    [found] = [label for label in labels if label != "Verification"]
    return str(found)


def all_words(at: AppTest) -> str:
    """Everything on a page that is text, Markdown as it is written."""
    words = [one.value for name in ("markdown", "caption", "error", "info") for one in at.get(name)]
    words += [one.proto.label for name in ("page_link", "button") for one in at.get(name)]
    words += [one.proto.icon for one in at.get("page_link")]
    words += [str(one.value.to_dict()) for one in at.table]
    return "\n".join(words)
