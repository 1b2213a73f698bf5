"""The height of a table that cuts no row."""

_ROW = 35  # px, of a row and of the header: 2.1875rem in Streamlit 1.67
_FRAME = 2  # px, above and below together
MOST_ROWS = 10


def whole_rows(n_row: int, most: int = MOST_ROWS) -> int:
    """The height in px that shows all rows, at most ``most``; the others are reached by scrolling.

    Streamlit's own height of a longer table, 400 px, cuts the eleventh row.
    """
    return _ROW * (1 + min(n_row, most)) + _FRAME
