"""A chart is redrawn where it stands, by the Plotly that Streamlit brings.

Symptom: to Streamlit another figure is another chart, so that with every selection it takes the old one away and makes a new
one from nothing. That takes twice to six times as long as changing what differs, forgets zoom and focus, and leaves a hole
until the new one is drawn. So `ui.components.plotly_figure` draws figures in place of ``st.plotly_chart``.
Version: 1.67.0. Related, closed: github.com/streamlit/streamlit issue 8782.
No longer needed when: with ``st.plotly_chart`` in `ui.page.chart`, `test_pictures_stay_while_the_next_ones_are_made` passes.
"""

from pathlib import Path

import streamlit as st

_SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"

[_FOUND] = _SCRIPTS.glob("PlotlyChart.*.js")
PLOTLY = _FOUND.name
"""The script of Streamlit's front end that holds Plotly, beside its others; its name ends with a digest."""
