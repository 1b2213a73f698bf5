"""Numbers have the same form, whether written by Python or by a component's script."""

from attnviz import viewer
from attnviz.figures.numbers import number_text

NUMBERS = [
    0.0,
    0.4754,
    0.00412,
    0.001,
    0.99996,
    1.0,
    1.47,
    -4.1305,
    12.26,
    999.4,
    12345.6,
    4.54e-4,
    0.001e-3,
    -8.9e-7,
    3e7,
    9.996,
    99.96,
    0.09996,
    0.0009997,
    999.6,
    999_999.6,
    -1e-9,
    -0.0009997,
]


def test_a_number_is_written_alike_by_both(page):
    script = f"numbers => {{ {viewer.joined('numbers')} return numbers.map(numberText); }}"
    assert page.evaluate(script, NUMBERS) == [number_text(number) for number in NUMBERS]
