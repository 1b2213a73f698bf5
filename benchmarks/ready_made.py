"""The first screen's page with nothing to compute: the sidebar's form and one or two figures that are ready."""

import json
import os
from pathlib import Path

import plotly.io
import streamlit as st

READY = json.loads(Path(os.environ["ATTNVIZ_READY_MADE"]).read_text(encoding="utf-8"))

st.set_page_config(layout="wide")
with st.sidebar:
    text = st.text_area("Sentence", next(iter(READY)), key="text")
for column, key, figure in zip(st.columns(2), ("matrix", "map"), READY[text], strict=False):
    with column:
        st.plotly_chart(plotly.io.from_json(figure), theme=None, key=key)
