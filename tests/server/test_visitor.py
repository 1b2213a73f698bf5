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
