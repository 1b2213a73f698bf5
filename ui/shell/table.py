"""How high a table is, so that no row of it is cut."""

_ROW = 35  # px, of a row and of the header: 2.1875rem in Streamlit 1.67
_FRAME = 2  # px, above and below together
MOST_ROWS = 10


def whole_rows(n_row: int, most: int = MOST_ROWS) -> int:
    """The height in px that shows all rows, or so many; the others are reached by scrolling.

    Streamlit's own height of a longer table, 400 px, cuts the eleventh row.
    """
    return _ROW * (1 + min(n_row, most)) + _FRAME
