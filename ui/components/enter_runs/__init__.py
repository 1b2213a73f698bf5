"""Enter submits the typed sentence; Shift+Enter begins a new line in it."""

from ui.components import register

_mount = register("enter_runs")


def enter_runs(*fields: str) -> None:
    """Listens to the text fields in the containers of these keys."""
    _mount(key="enter_runs", data={"fields": fields})
