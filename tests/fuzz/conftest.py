"""How many examples, and a count of them: few in `make test`, as many as there is time for in `make fuzz`."""

import json
import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from streamlit.runtime.scriptrunner import exec_code
from streamlit.testing.v1 import AppTest

from tests.app.conftest import (  # noqa: F401 - fixtures of pages, for these pages too
    _jobs_are_made_here,
    _made_here,
    _on_this_machine,
    _packages_scanned_once,
    _runs_waited_for_without_work,
    _scripts_compiled_once,
)

COMMON = {
    "deadline": None,
    # a page's fixtures hold for all examples; what a page does takes as long as it takes
    "suppress_health_check": [
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
}
settings.register_profile(
    # the same ones every time: what is new fails in `make fuzz`, and then has a test of its own
    "short",
    max_examples=3,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    **COMMON,
)
settings.register_profile("long", max_examples=200, **COMMON)
settings.load_profile(os.environ.get("FUZZ_PROFILE", "short"))

TALLY: Counter[str] = Counter()
UNCAUGHT: list[str] = []


@pytest.fixture
def tally() -> Callable[[str], None]:
    """Counts one example of a kind."""

    def count(kind: str) -> None:
        TALLY[kind] += 1

    return count


@pytest.fixture(autouse=True)
def _uncaught_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page shows nothing of an exception; the message of a test that fails has it."""
    handle = exec_code.handle_user_script_exception

    def told(error: Exception, *others: object) -> None:
        UNCAUGHT.append("".join(traceback.format_exception(error)[-4:]))
        handle(error, *others)

    monkeypatch.setattr(exec_code, "handle_user_script_exception", told)


def assert_shown(at: AppTest) -> None:
    """No run of the page has ended in an exception."""
    raised = UNCAUGHT.copy()
    UNCAUGHT.clear()
    assert not at.exception, "\n".join(raised)


@pytest.fixture(autouse=True, scope="session")
def _written() -> Iterator[None]:
    yield
    if path := os.environ.get("FUZZ_TALLY"):
        Path(path).write_text(json.dumps(TALLY))
