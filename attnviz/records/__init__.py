"""The data types of attnviz: frozen records of read-only float32 numpy arrays.

numpy only; of attnviz only the errors are imported. Axes are named ``layer head query key d_head token point``.
"""

from attnviz.records.attention import AttentionPattern, LayerAttention, resting_places
from attnviz.records.checks import FILE, WEIGHTS, Check, VerificationReport
from attnviz.records.glyphs import SPACE, as_label, bare, visible
from attnviz.records.head import AllHeads, Head, read_heads, titles
from attnviz.records.head_table import by_layer, head_table, heads_in, known
from attnviz.records.points import Chance, Placement, Projection, Reliability
from attnviz.records.record import (
    GIVEN,
    KINDS,
    MEASURES,
    ROLE_NAMES,
    Kind,
    Measure,
    Mixing,
    Progress,
    Provenance,
    Record,
    Role,
    check_index,
    progress_within,
)
from attnviz.records.result import Result
from attnviz.records.tokens import (
    LONG,
    TEMPLATES,
    Axis,
    Template,
    TextForm,
    Tokens,
    Unit,
    arrange,
    words_of_labels,
)

Faithfulness = Reliability
"""Old name of `Reliability`."""

__all__ = [
    "FILE",
    "GIVEN",
    "KINDS",
    "LONG",
    "MEASURES",
    "ROLE_NAMES",
    "SPACE",
    "TEMPLATES",
    "WEIGHTS",
    "AllHeads",
    "AttentionPattern",
    "Axis",
    "Chance",
    "Check",
    "Faithfulness",
    "Head",
    "Kind",
    "LayerAttention",
    "Measure",
    "Mixing",
    "Placement",
    "Progress",
    "Projection",
    "Provenance",
    "Record",
    "Reliability",
    "Result",
    "Role",
    "Template",
    "TextForm",
    "Tokens",
    "Unit",
    "VerificationReport",
    "arrange",
    "as_label",
    "bare",
    "by_layer",
    "check_index",
    "head_table",
    "heads_in",
    "known",
    "progress_within",
    "read_heads",
    "resting_places",
    "titles",
    "visible",
    "words_of_labels",
]
