"""The rooms in reading order, each with its parts: the only list of them."""

from ui.part import Room, list_rooms
from ui.rooms import door_experiment, for_teachers, generate, glossary, myths, verification
from ui.rooms.all_heads import find_a_head, long_text, maps, pictures_and_numbers
from ui.rooms.cause import heads_off, inputs, lens
from ui.rooms.compare import patching, side_by_side
from ui.rooms.explore import other_maps, several_heads, together
from ui.rooms.how_it_works import cost, history, kinds_of_attention, positions, scaling, step_by_step
from ui.rooms.many_texts import find_tokens, joint_map, profiles

ROOMS = (
    Room(
        name="Explore",
        icon="grid_on",
        question="Where does each token look?",
        parts=(together.PART, several_heads.PART, other_maps.PART),
    ),
    Room(
        name="All heads",
        icon="apps",
        question="Which heads are there?",
        parts=(pictures_and_numbers.PART, maps.PART, find_a_head.PART, long_text.PART),
    ),
    Room(
        name="How it works",
        icon="stairs",
        question="How does a sentence become a matrix?",
        parts=(
            step_by_step.PART,
            scaling.PART,
            positions.PART,
            kinds_of_attention.PART,
            cost.PART,
            history.PART,
        ),
    ),
    Room(name="Door experiment", icon="door_front", parts=(door_experiment.PART,)),
    Room(name="Myths", icon="forum", parts=(myths.PART,)),
    Room(
        name="Compare",
        icon="compare_arrows",
        question="What changes with another sentence, head, layer or model?",
        parts=(side_by_side.PART, patching.PART),
    ),
    Room(
        name="Cause",
        icon="bolt",
        question="What would change without it?",
        parts=(heads_off.PART, inputs.PART, lens.PART),
    ),
    Room(name="Generate", icon="edit_note", parts=(generate.PART,)),
    Room(
        name="Many texts",
        icon="library_books",
        question="What does a head do over many texts?",
        parts=(profiles.PART, find_tokens.PART, joint_map.PART),
    ),
    Room(name="For teachers", icon="school", parts=(for_teachers.PART,)),
    Room(name="Verification", icon="fact_check", parts=(verification.PART,), in_menu=False),
    Room(name="Glossary", icon="dictionary", parts=(glossary.PART,), in_menu=False),
)
"""Verification opens behind the verdict; the glossary from its terms, and from the search at the foot of the menu."""
list_rooms(ROOMS)
PAGES = tuple(part for room in ROOMS for part in room.parts if part.shows_text)
"""All parts that show a text, a script each."""
