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
    said = [trace_of_figure.hovertemplate for trace_of_figure in draw_followed(found).data]
    assert len(said) == 5  # the difference, and two tokens' probabilities and ranks
    assert [sentence for sentence in said if "%{y:,}" in sentence] == [
        sentence for sentence in said if "rank" in sentence
    ]
    assert (
        sum("rank" in sentence for sentence in said) == 2
        and sum("%{y:.3g}" in sentence for sentence in said) == 3
    )
