"""Where do queries and keys lie? One head's vectors as points, linked with its matrix, and how reliable they are."""

from dataclasses import replace
from functools import partial

import streamlit as st

from attnviz.heads.score import score_csv, score_of
from attnviz.maps.table import points_csv
from attnviz.records import Projection
from ui.rooms.explore.query_key_map import reliability as reliability
from ui.rooms.explore.query_key_map.controls import controls
from ui.rooms.explore.query_key_map.drawing import HEIGHT, draw_map, draw_matrix, figures
from ui.rooms.explore.query_key_map.layout import LastMap, laid_out, settings_of, side_of, wait_for
from ui.rooms.explore.query_key_map.picked_pair import picked_pair
from ui.rooms.explore.query_key_map.ranked_maps import ranked_maps
from ui.rooms.explore.query_key_map.score_sources import score_sources
from ui.session import of_session
from ui.shell import errors, verdict
from ui.shell.export.recipe import map_lines
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words import findings as written
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Other maps")
view = replace(view, selection=view.selection.but(show="weights"))  # nothing else here has a matrix
selection, query = view.selection, view.query
numbers = view.pattern()
key = written.strongest_key(numbers, query) if selection.key is None else selection.key
picked = query, key
is_of_key = side_of(selection) == "key"
sentence = written.key_finding(numbers, key) if is_of_key else written.finding(numbers, query, key)
with st.container(key="finding"):
    st.markdown(f"**{written.place(numbers)}: {literal(sentence)}**")

map_column, matrix_column = st.columns([3, 2], gap="medium")
projection: Projection | None = None
drawn = view  # of an earlier map, while the next one is made
with map_column, errors.explained():
    controls(view)
    last = of_session(LastMap)
    projection, jobs = laid_out(view)
    if projection is not None:
        last.source, last.kind, last.projection = selection.source, view.kind, projection
    else:
        wait_for(jobs, view)
        if last.projection is not None and (last.source, last.kind) == (selection.source, view.kind):
            projection = last.projection
            drawn = replace(view, selection=selection.but(layer=projection.layer, head=projection.head))
    if projection is not None:
        draw_map(drawn, projection, picked)
    else:
        st.container(height=HEIGHT, border=False)  # so that nothing below jumps when the map comes
with matrix_column:
    if projection is not None:
        reliability.reliability(drawn, projection)
    draw_matrix(view, picked, sentence)  # above the table, so that a laptop shows it beside the map
    if projection is not None:
        reliability.table(drawn, projection)

if projection is not None:
    reliability.implied(drawn, projection, picked)
picked_pair(view, query, key)
sources = score_sources(view, query, key)
ranked_maps(view)
terms(
    "Query",
    "Key",
    "Attention map",
    "t-SNE",
    "Perplexity",
    "UMAP",
    "PCA",
    "Classical MDS",
    "Lifted vectors",
    "Rank correlation",
    "Permutation test",
    "Trustworthiness",
    "KL divergence",
)
take(
    view,
    {"space_map": "Map of queries and keys", "matrix": "Attention matrix", "pair": "Selected pair"}
    | ({} if sources is None else {"score_sources": "Sources of the score"}),
    csv=partial(score_csv, score_of(view.trace, *selection.place, query, key, kind=view.kind)),
    numbers="Selected pair",
    notes={} if projection is None else {"space_map": written.map_note(projection)},
    python=map_lines(view, picked, settings_of(selection)),
    drawn=None if projection is None else partial(figures, drawn, projection, picked),
    points=None if projection is None else partial(points_csv, projection),
)
verdict.show(view)
