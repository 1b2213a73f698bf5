"""The files of a profile: their names, their columns and the version of these, and whether a table has them.

docs/corpus.md has their columns.
"""

from pathlib import Path

import pyarrow as pa

from attnviz.corpus.columns import MEANS
from attnviz.errors import CorpusError
from attnviz.heads.probes import PROBES

HEADS, EXAMPLES = "heads.parquet", "examples.parquet"
METADATA = b"attnviz"
"""Key of the metadata of both files."""
SCHEMA = 1
"""Version of the columns that is read; adding a column does not change it."""
NUMBERS = (*MEANS, *PROBES)
"""Numbers of a head with an interval."""
_PAIR = pa.struct(
    [
        ("query", pa.string()),
        ("key", pa.string()),
        ("mass", pa.float64()),
        ("expected", pa.float64()),
        ("n", pa.int64()),
    ]
)
_RELATION = pa.struct(
    [
        ("relation", pa.string()),
        ("direction", pa.string()),
        ("accuracy", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("words", pa.int64()),
        ("offset", pa.int64()),
        ("offset_accuracy", pa.float64()),
    ]
)
HEADS_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("layer", pa.int32()),
        ("head", pa.int32()),
        ("texts", pa.int64()),
        *((name + end, pa.float64()) for name in NUMBERS for end in ("", "_low", "_high")),
        ("copying", pa.float64()),
        ("distances", pa.list_(pa.float64())),
        ("positions", pa.list_(pa.float64())),
        ("relations", pa.list_(_RELATION)),
        ("token_pairs", pa.list_(_PAIR)),
        ("part_pairs", pa.list_(_PAIR)),
    ]
)
EXAMPLES_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("layer", pa.int32()),
        ("head", pa.int32()),
        ("decile", pa.int8()),
        ("rank", pa.int8()),
        ("activation", pa.float64()),
        ("text", pa.string()),
        ("query", pa.int32()),
        ("query_label", pa.string()),
        ("labels", pa.list_(pa.string())),
        ("weights", pa.list_(pa.float32())),
    ]
)


def check_columns(there: pa.Schema, wanted: pa.Schema, path: Path) -> None:
    """Checks that a table has the columns that its file should have; others are ignored.

    Raises:
        CorpusError: a column is missing, or has another type.
    """
    for field in wanted:
        at = there.get_field_index(field.name)
        if at < 0 or there.field(at).type != field.type:
            has = "is missing" if at < 0 else f"holds {there.field(at).type}"
            raise CorpusError(
                f"The column {field.name} of {path} should hold {field.type} and {has}. Make the profile anew with attnviz corpus "
                "profile."
            )
