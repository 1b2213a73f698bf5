"""Work-arounds for Streamlit, one file each: the symptom, the version that has it, and how to tell that it is gone.

Five of them import Streamlit's private names, and no other module of attnviz does: `sent_values`, `runs_in_turn`,
`sessions`, `log_lines`, `no_address_lookup`. Private names may change with any version, so an untried one ends the start.
"""

import streamlit

TRIED_WITH = "1.67.0"
"""The version that every work-around was last tried with; a test asks for a new trial when another one is installed."""


def check_version(installed: str) -> None:
    """Raises SystemExit, which ends the start with its sentence, unless this is the tried version or a patch release of it."""
    needed = TRIED_WITH.rpartition(".")[0]
    if installed.rpartition(".")[0] != needed:
        raise SystemExit(
            f"attnviz's app needs Streamlit {needed}; {installed} is installed. "
            f"Install the other one, and start attnviz again: pip install streamlit=={TRIED_WITH}"
        )


check_version(streamlit.__version__)
