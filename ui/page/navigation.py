"""The menu: the pages in their order, each with its name and icon, and links that keep what is chosen."""

import streamlit as st

from ui.session import Link, of_session

PAGES = (
    ("app.py", "Attention", ":material/grid_on:"),
    ("pages/heads.py", "All heads", ":material/apps:"),
    ("pages/find.py", "Find the head", ":material/search:"),
    ("pages/flow.py", "Token flow", ":material/conversion_path:"),
    ("pages/compare.py", "Compare", ":material/compare_arrows:"),
    ("pages/space.py", "Query-key space", ":material/scatter_plot:"),
    ("pages/maps.py", "All maps", ":material/view_module:"),
    ("pages/steps.py", "Step by step", ":material/stairs:"),
    ("pages/scaling.py", "Scaling", ":material/square_foot:"),
    ("pages/masks.py", "Kinds", ":material/grid_guides:"),
    ("pages/positions.py", "Positions", ":material/format_list_numbered:"),
    ("pages/claims.py", "Claims", ":material/forum:"),
    ("pages/cost.py", "Cost", ":material/monitoring:"),
    ("pages/history.py", "History", ":material/history:"),
    ("pages/collection.py", "Many sentences", ":material/library_books:"),
    ("pages/glossary.py", "Glossary", ":material/dictionary:"),
    ("pages/verification.py", "Verification", ":material/fact_check:"),
)


def menu() -> None:
    """The pages as links."""
    params = of_session(Link).params or {}
    columns = st.columns(2, gap="small")
    for number, (page, label, icon) in enumerate(PAGES):
        columns[number * 2 // len(PAGES)].page_link(page, label=label, icon=icon, query_params=params)
