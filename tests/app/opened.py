"""What a page says of a bundle that was opened on it."""

from streamlit.testing.v1 import AppTest

from tests.app.screen import unescaped
from ui.shell.verdict import RECORDED as RECORDED


def captions(at: AppTest) -> list[str]:
    """Each of the small texts."""
    return [unescaped(element.value) for element in at.caption]


def banner(at: AppTest) -> str:
    """What the line with the icon of a bundle says; nothing where the page shows no bundle."""
    icon = ":material/folder_zip:"
    return "".join(line.removeprefix(icon) for line in captions(at) if line.startswith(icon))


def verdict(at: AppTest) -> str:
    """What the link to the Verification page says, beside the finding or at the sidebar's end."""
    labels = [
        element.proto.label for element in at.get("page_link") if element.proto.page.endswith("verification")
    ]
    [verdict_label] = [label for label in labels if label != "Verification"]
    return str(verdict_label)


def all_words(at: AppTest) -> str:
    """Everything on a page that is text, Markdown as it is written."""
    words = [element.value for name in ("markdown", "caption", "error", "info") for element in at.get(name)]
    words += [element.proto.label for name in ("page_link", "button") for element in at.get(name)]
    words += [element.proto.icon for element in at.get("page_link")]
    words += [str(row.value.to_dict()) for row in at.table]
    return "\n".join(words)
