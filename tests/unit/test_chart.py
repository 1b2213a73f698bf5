"""What a chart needs beside the figure."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
def test_pandas_is_there_before_any_figure():
    """Or Plotly may find it half imported, for the table of another visitor's page."""
    code = "import sys, ui.shell.chart; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
