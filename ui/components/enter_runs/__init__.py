"""Enter shows the sentence that is typed; Shift and Enter begin a new line in it."""

from ui.components import register

_mount = register("enter_runs")


def enter_runs(field: str) -> None:
    """Listens to the text field in the container of this key."""
    _mount(key="enter_runs", data={"field": field})
