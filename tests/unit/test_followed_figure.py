"""The figure of chosen answers layer by layer."""

import numpy as np

from attnviz.effects.lens import FollowedTokens
from attnviz.figures.lens import draw_followed


def test_a_rank_is_written_whole_and_all_else_to_three_digits():
    followed = FollowedTokens(
        kind="decoder",
        position=1,
        labels=("a", "b"),
        logits=np.array([[1, 0], [2, 1]], dtype=np.float32),
        probabilities=np.array([[0.2, 0.1], [0.5, 0.25]], dtype=np.float32),
        ranks=np.array([[12345, 40000], [1, 2]]),
    )
    templates = [line.hovertemplate for line in draw_followed(followed).data]
    assert len(templates) == 5  # the difference, and two tokens' probabilities and ranks
    assert [template for template in templates if "%{y:,}" in template] == [
        template for template in templates if "rank" in template
    ]
    assert (
        sum("rank" in template for template in templates) == 2
        and sum("%{y:.3g}" in template for template in templates) == 3
    )
