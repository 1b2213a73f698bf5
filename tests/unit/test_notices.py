"""What is said where there is no number."""

from ui.choice.fitting import nearest_words


def test_the_last_is_shown_in_its_place():
    assert nearest_words("layer", 6, 6, "m has layers") == (
        "There is no layer 6: m has layers 0 to 5. Layer 5 is shown."
    )
