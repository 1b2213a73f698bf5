"""How does a decoder write? The tokens that follow the sentence, one after another, each with what its heads read."""

from ui.part import Block, Part, Picture, Row, Sheet
from ui.rooms.generate.step import beside, finding, matrices, note, strip
from ui.rooms.generate.written import can_write, controls, generation_lines, offer_writer, screen_of
from ui.shell.export.captions import WEIGHT

PART = Part(
    name="Generate",
    address="generation",
    question="What does a decoder read while it writes?",
    predicts="writes",
    terms=("Decoder", "Sampling temperature", "Token", "Layer", "Head", "Weight"),
    sheets=(
        Sheet(when=lambda view: not can_write(view), screen=offer_writer),
        Sheet(
            controls=controls,
            screen=screen_of,
            finding=finding,
            rows=(
                strip,
                Row(
                    Block(
                        matrices,
                        (
                            Picture("written_matrix", "Attention over what was written", WEIGHT),
                            Picture("branches_first", "Attention in A", WEIGHT),
                            Picture("branches_second", "Attention in B", WEIGHT),
                            Picture("branches_difference", "B minus A", f"{WEIGHT} of B minus that of A"),
                        ),
                    ),
                    beside,
                    widths=(3, 1),
                ),
                note,
            ),
            numbers="Written tokens",
            csv=lambda screen: screen.continuation.csv(),
            python=generation_lines,
            about=lambda screen: f"tokens written: {len(screen.continuation.written)}",
        ),
    ),
)
