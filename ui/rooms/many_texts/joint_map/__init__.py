"""What does a head do over many sentences? All their queries and keys in one map."""

from ui.part import Part, Picture, Row, Sheet
from ui.rooms.many_texts.joint_map.drawn_map import CHART, as_csv, beside, draw, headline, sentence
from ui.rooms.many_texts.joint_map.laid_out import controls, screen_of
from ui.words.literal import literal

PART = Part(
    name="Joint map",
    address="many_sentences",
    question="Where do the queries and keys of many sentences lie?",
    longest=8192,
    asks=("head", "rows"),
    sheets=(
        Sheet(
            controls=controls,
            screen=screen_of,
            finding=lambda screen: literal(headline(screen)),
            rows=(
                Row(
                    Picture(CHART, "Map of many sentences", "circles: queries; diamonds: keys", draw),
                    beside,
                    widths=(3, 2),
                ),
                sentence,
            ),
            numbers="Points",
            csv=as_csv,
        ),
    ),
)
