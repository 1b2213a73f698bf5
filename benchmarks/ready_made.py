"""The first screen's page with nothing to compute: the sidebar's form and a heatmap that is ready."""

import json
import os
from pathlib import Path

import plotly.io
import streamlit as st

READY = json.loads(Path(os.environ["ATTNVIZ_READY_MADE"]).read_text(encoding="utf-8"))

st.set_page_config(layout="wide")
with st.sidebar:
    text = st.text_area("Sentence", next(iter(READY)), key="text")
left, _ = st.columns(2)
with left:
    st.plotly_chart(plotly.io.from_json(READY[text]), theme=None, key="matrix")
