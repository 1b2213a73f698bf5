"""The visitor who speaks Streamlit's protocol: what they do arrives, so that what load measures is a change."""

import pytest

from benchmarks.load import KINDS, change
from tests.visitor import run, visit


@pytest.mark.parametrize("kind", sorted({*KINDS}))
def test_each_kind_of_change_changes_the_link(server, kind):
    async def changed() -> tuple[dict[str, str], dict[str, str], list[str]]:
        async with visit(server, text="I was watching the door when it opened.", layer=1, head=0) as visitor:
            await visitor.settle()
            before, n_run = visitor.params, visitor.n_run
            await change(visitor, 0, KINDS.index(kind) + len(KINDS))
            await visitor.until(lambda: visitor.n_run > n_run)
            await visitor.settle()
            return before, visitor.params, visitor.exceptions

    before, after, exceptions = run(changed())
    assert exceptions == []
    names = {"sentence": {"text"}, "token": {"query"}, "layer": {"layer"}, "head": {"head"}}[kind]
    assert {name for name in names if before.get(name) != after.get(name)} == names


def mask(visitor):
    return visitor.trigger("token_strip", "mask", 3)


def fill_the_stage(visitor):
    return visitor.click("part_matrix")


@pytest.mark.parametrize("act", [*sorted({*KINDS}), mask, fill_the_stage])
def test_what_is_around_the_stage_is_sent_only_where_it_changes(server, act):
    """A change of head, query or key sends the stage alone, and the link; the menu is never sent again."""

    async def sent() -> tuple[set[str], set[str], bool]:
        async with visit(server, text="I was watching the door when it opened.", layer=1, head=0) as visitor:
            await visitor.settle()
            before, n_run, params = dict(visitor.widgets), visitor.n_run, visitor.params
            await (act(visitor) if callable(act) else change(visitor, 0, KINDS.index(act) + len(KINDS)))
            await visitor.until(lambda: visitor.n_run > n_run)
            await visitor.settle()
            again = {key for key, widget in visitor.widgets.items() if widget is not before.get(key)}
            return again, {*before}, visitor.params != params

    again, all_of_page, has_new_link = run(sent())
    assert {"field_text", "preset_choice", "head_next", "token_strip", "matrix", "ranking"} <= all_of_page
    assert {"head_next", "token_strip", "matrix"} <= again
    around = {"field_text", "preset_choice", "stage_weights"}
    assert around & again == (set() if act in ("head", "layer", "token") else around)
    assert has_new_link
