"""The figure of chosen answers layer by layer."""

import numpy as np

from attnviz.effects.lens import FollowedTokens
from attnviz.figures.followed import draw_followed


def test_a_rank_is_written_whole_and_all_else_to_three_digits():
    found = FollowedTokens(
        kind="decoder",
        position=1,
        labels=("a", "b"),
        logits=np.array([[1, 0], [2, 1]], dtype=np.float32),
        probabilities=np.array([[0.2, 0.1], [0.5, 0.25]], dtype=np.float32),
        ranks=np.array([[12345, 40000], [1, 2]]),
    )
    said = [one.hovertemplate for one in draw_followed(found).data]
    assert len(said) == 5  # the difference, and two tokens' probabilities and ranks
    assert [one for one in said if "%{y:,}" in one] == [one for one in said if "rank" in one]
    assert sum("rank" in one for one in said) == 2 and sum("%{y:.3g}" in one for one in said) == 3
