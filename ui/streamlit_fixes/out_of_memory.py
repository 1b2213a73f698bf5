"""A page that runs out of memory ends in a sentence.

Symptom: Streamlit tells a visitor that there was an error, and writes a traceback into the log, wherever an array of numpy or
torch does not fit into memory.
Version: 1.67.0. No upstream issue is known to us: it does so with every exception.
No longer needed when: without it tests/app/test_out_of_memory.py passes.
"""

from collections.abc import Callable
from typing import Any

from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from attnviz.errors import OutOfMemoryError, enough_memory


def end_in_a_sentence(show: Callable[[OutOfMemoryError], None]) -> None:
    """From now on ``show`` is called where a run of a page or a block is out of memory."""
    execute = vars(script_runner)["exec_func_with_error_handling"]

    def explained(run: Callable[[], Any], context: ScriptRunContext) -> Any:
        def to_its_end() -> Any:
            try:
                with enough_memory():
                    return run()
            except OutOfMemoryError as error:
                show(error)
                return None

        return execute(to_its_end, context)

    vars(script_runner)["exec_func_with_error_handling"] = explained
