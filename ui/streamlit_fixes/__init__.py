"""Work-arounds for Streamlit, one file each: the symptom, the version that has it, and how to see that it is gone.

Five of them import what Streamlit keeps to itself, and no other module of the house does: `sent_values`, `runs_in_turn`, `sessions`,
`log_lines`, `no_address_lookup`. What is private may change with any version, so that another one ends the start.
"""

import streamlit

TRIED_WITH = "1.67.0"
"""The version that every work-around was last tried with; a test asks for a new trial when another one is installed."""


def check_version(installed: str) -> None:
    """SystemExit, which ends the start with its sentence, unless it is the version that was tried or a correction of it."""
    needed = TRIED_WITH.rpartition(".")[0]
    if installed.rpartition(".")[0] != needed:
        raise SystemExit(
            f"attnviz's app needs Streamlit {needed}; {installed} is installed. "
            f"Install the other one, and start attnviz again: pip install streamlit=={TRIED_WITH}"
        )


check_version(streamlit.__version__)
