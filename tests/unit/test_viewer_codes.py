"""Codes of 16 bits: numbers are written alike before and after, and the ends stay what they are."""

import numpy as np
import pytest

from attnviz.figures.numbers import number_text, share_text
from attnviz.viewer.codes import MASKED, Scale, coded, number_forms, share_forms

SHARES = np.concatenate(
    [
        np.exp(np.random.default_rng(0).uniform(-90, 0, 4000)),
        np.random.default_rng(1).random(4000),
        np.arange(2049) / 2048,  # ties in both forms
        np.arange(2001) / 2000,
        [0, 1, 1 - 5e-7, 1 - 2e-6, 0.00095, 0.000995, 0.0009995, 0.0005, 1e-45],
    ]
).astype(np.float32)


@pytest.mark.parametrize(
    ("numbers", "is_share"),
    [
        (SHARES, True),
        (SHARES / 3, True),
        (SHARES * 4.7, False),  # norm-based weights
        (np.concatenate([SHARES[4000:] * 20, SHARES[4000:] * -31]), False),  # scores
    ],
)
def test_a_number_has_the_same_digits_after(numbers, is_share):
    found = coded(numbers.astype(np.float32), is_share=is_share)
    back = found.scale.numbers(found.codes)
    ways = (number_text, share_text) if is_share else (number_text,)
    for written in ways:
        pairs = zip(numbers.astype(np.float32).tolist(), back.tolist(), strict=True)
        assert [pair for pair in pairs if written(pair[0]) != written(pair[1])] == []
    assert found.n_unlike == 0
    assert found.error == np.abs(back.astype(np.float64) - numbers.astype(np.float32)).max()
    assert found.error < (6e-5 if is_share else 1e-3 * np.abs(numbers).max())


def test_nothing_and_all_stay_exact_and_a_masked_cell_is_none():
    numbers = np.array([[0.0, 1.0, np.nan], [-np.inf, 0.25, 0.75]], dtype=np.float32)
    found = coded(numbers, is_share=True)
    assert (found.codes == MASKED).tolist() == [[False, False, True], [True, False, False]]
    assert found.codes.dtype == np.dtype("<u2")
    assert found.scale.numbers(found.codes)[0, :2].tolist() == [0.0, 1.0]
    scores = coded(np.array([[-31.0, 0.0, 12.5]], dtype=np.float32), is_share=False)
    assert scores.scale.numbers(scores.codes)[0, :2].tolist() == [-31.0, 0.0]


@pytest.mark.parametrize("numbers", [np.zeros((2, 3)), np.full((2, 3), np.nan), np.zeros((1, 0))])
@pytest.mark.parametrize("is_share", [True, False])
def test_without_a_number_there_is_no_error(numbers, is_share):
    found = coded(numbers.astype(np.float32), is_share=is_share)
    back = found.scale.numbers(found.codes)
    assert found.error == 0 and np.array_equal(back, numbers, equal_nan=True)


def test_16_bits_err_less_than_float16():
    scores = np.random.default_rng(2).normal(scale=8, size=5000).astype(np.float32)
    rounded = np.abs(scores.astype(np.float16).astype(np.float64) - scores).max()
    assert coded(scores, is_share=False).error < rounded
    shares = np.random.default_rng(3).random(5000, dtype=np.float32)
    assert coded(shares, is_share=True).error < np.abs(shares.astype(np.float16) - shares).max() / 4


def test_numbers_have_one_form_if_and_only_if_they_are_written_alike():
    numbers = np.concatenate([SHARES, -SHARES, SHARES * 1000, SHARES * 1e7]).astype(np.float64)
    for forms_of, written in ((number_forms, number_text), (share_forms, share_text)):
        pairs = set(zip(forms_of(numbers).tolist(), map(written, numbers.tolist()), strict=True))
        assert len(pairs) == len({form for form, _ in pairs}) == len({text for _, text in pairs})


def test_a_code_is_a_power_from_the_join_on_and_a_ratio_below():
    """By hand: the join is at 2 · 0.1², and two codes are below it."""
    scale = Scale(lowest=0.0, highest=2.0, zero=0, power=2, root=0.1, low=3, ratio=0.5)
    share = 0.1 + 0.9 * (1003 - 3) / (65534 - 3)
    codes = np.array([0, 1, 2, 3, 1003, 65534, 65535], dtype=np.uint16)
    np.testing.assert_allclose(
        scale.numbers(codes), [0, 0.005, 0.01, 0.02, 2 * share**2, 2, np.nan], rtol=1e-6
    )
