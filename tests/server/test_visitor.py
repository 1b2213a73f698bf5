"""The visitor who speaks Streamlit's protocol: what they do arrives, so that what load measures is a change."""

import pytest

from benchmarks.load import change, length, open_link, rest, sentence
from tests.visitor import run, visit

HEAD, SENTENCE = 0, 2


def other_sentence(visitor):
    return change(visitor, 0, SENTENCE)


def mask(visitor):
    return visitor.trigger("viewer", "mask", 3)


async def after(server, act, **link):
    """What a visitor has before and after this: the link, and the newest message of each component; and the runs that it took."""
    async with visit(
        server, text="I was watching the door when it opened.", layer=1, head=11, **link
    ) as visitor:
        await visitor.settle()
        before, n_run = (dict(visitor.params), dict(visitor.widgets)), visitor.n_run
        await act(visitor)
        await visitor.until(lambda: visitor.n_run > n_run)
        await visitor.settle()
        assert visitor.exceptions == []
        return before, (dict(visitor.params), dict(visitor.widgets)), visitor.told("viewer")


@pytest.mark.parametrize("act", [rest, open_link])
def test_the_next_head_is_where_the_stage_is_then(server, act):
    (before, _), (link, _), told = run(after(server, act))
    assert (before["layer"], before["head"]) == ("1", "11")
    assert (link["layer"], link["head"]) == ("2", "0")
    assert (told["selection"]["layer"], told["selection"]["head"]) == (2, 0)
    assert told["n"] == (
        1 if act is rest else 0
    )  # the server was told by the viewer, or by the address alone
    assert link.keys() == before.keys()


def test_another_sentence_is_in_the_link(server):
    _, (link, _), _ = run(after(server, other_sentence))
    assert link["text"] == sentence(0, SENTENCE, length(0, SENTENCE))


@pytest.mark.parametrize("act", [rest, open_link, other_sentence, mask])
def test_what_is_around_the_stage_is_sent_only_where_it_changes(server, act):
    """A rest sends the selection, the words about it and the map; the menu and the document are never sent again."""
    (_, before), (_, widgets), _ = run(after(server, act))
    again = {key for key, widget in widgets.items() if widget is not before.get(key)}
    assert {"viewer", "map"} <= again
    around = {"field_text", "preset_choice", "stage_data"}
    assert around & again == (set() if act is rest else around)


def test_without_the_map_in_sight_a_rest_sends_few_messages(server):
    async def sent():
        async with visit(server, text="I was watching the door when it opened.", filled="matrix") as visitor:
            await visitor.settle()
            n_message, n_byte, n_run = visitor.n_message, visitor.n_byte, visitor.n_run
            await rest(visitor)
            await visitor.until(lambda: visitor.n_run > n_run)
            await visitor.settle()
            return visitor.n_message - n_message, visitor.n_byte - n_byte

    n_message, n_byte = run(sent())
    assert n_message <= 10 and n_byte <= 10_000


@pytest.mark.parametrize("is_of_text", [True, False])
def test_a_token_of_the_text_before_is_none_of_this_one(server, is_of_text):
    """A visitor selects head and token, and types another text before the server is told."""

    async def settle_late(visitor):
        shown = visitor.told("viewer")
        there = shown["selection"] | {"head": 5, "query": 2, "key": 3}
        of = shown["text"] if is_of_text else "another"
        await visitor.trigger("viewer", "settled", {"n": shown["n"] + 1, "text": of, "selection": there})

    _, (link, _), _ = run(after(server, settle_late, query=4, key=6))
    assert link["head"] == "5"
    assert (link["query"], link["key"]) == (("2", "3") if is_of_text else ("4", "6"))
