"""Small pictures of matrices: read back with Pillow, they hold each block's largest cell."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from attnviz.figures.cells import MOST_PIXELS, colours_at, pool, thumbnail
from attnviz.figures.theme import DARK, LIGHT, weight_scale


def tones(png):
    """Entries of the palette, pixel by pixel, as Pillow reads them."""
    with Image.open(BytesIO(png)) as image:
        assert (image.format, image.mode) == ("PNG", "P")
        return np.asarray(image)


def colours(png):
    with Image.open(BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"))


def random_weights(*shape):
    weights = np.random.default_rng(7).exponential(size=shape).astype(np.float32) ** 3
    return weights / weights.sum(axis=-1, keepdims=True)


def blocks(size):
    """Where the pooled rows or columns of a matrix start and stop, written out."""
    length = 1
    while length * MOST_PIXELS < size:
        length += 1
    return [range(start, min(start + length, size)) for start in range(0, size, length)]


@pytest.mark.parametrize("shape", [(11, 11), (64, 64), (67, 131), (5, 509), (512, 512)])
def test_a_picture_holds_the_largest_cell_of_each_block(shape):
    weights = random_weights(*shape)
    expected = [[max(weights[row, column] for row in rows for column in columns) for columns in blocks(shape[1])] for rows in blocks(shape[0])]  # fmt: skip

    np.testing.assert_array_equal(pool(weights), expected)
    pixels = tones(thumbnail(weights))
    np.testing.assert_array_equal(pixels, np.rint(255 * (np.array(expected) / weights.max())))
    assert max(pixels.shape) <= MOST_PIXELS


def test_one_strong_cell_is_seen_wherever_it_is():
    for row, column in ((0, 0), (510, 3), (511, 511), (257, 256)):
        weights = np.full((512, 512), 1e-6, dtype=np.float32)
        weights[row, column] = 0.9
        pixels = tones(thumbnail(weights))
        assert [tuple(at) for at in np.argwhere(pixels == 255)] == [(row // 8, column // 8)]
        assert (pixels > 0).sum() == 1


def test_a_scale_that_pictures_share():
    weights = np.array([[0.1, 0.2, 0.0]], dtype=np.float32)
    assert tones(thumbnail(weights)).tolist() == [[128, 255, 0]]
    assert tones(thumbnail(weights, largest=0.4)).tolist() == [[64, 128, 0]]


def test_logarithmic_tones_are_even_over_four_decades():
    weights = np.array([[1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0]], dtype=np.float32)
    pixels = tones(thumbnail(weights, colour="logarithmic"))
    np.testing.assert_allclose(
        pixels, [[255, 191.25, 127.5, 63.75, 0, 0, 0]], atol=0.6
    )  # a tone is a whole number


@pytest.mark.parametrize(("name", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_colours_are_those_of_the_heatmap(name, theme):
    scale = weight_scale(theme)
    weights = np.array([[place for place, _ in scale]], dtype=np.float32)
    expected = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in scale]

    np.testing.assert_array_equal(colours_at(weights[0].astype(float), name), expected)
    drawn = colours(thumbnail(weights, theme=name))[0].astype(int)
    assert np.abs(drawn - expected).max() <= 1  # 256 tones do not hit every one of 33
    assert tuple(drawn[0]) == tuple(int(theme.background[i : i + 2], 16) for i in (1, 3, 5))


def test_a_matrix_of_zeros_is_empty():
    assert not tones(thumbnail(np.zeros((7, 5), dtype=np.float32))).any()


def test_512_tokens_take_few_bytes():
    assert len(thumbnail(random_weights(512, 512))) < 7_000
