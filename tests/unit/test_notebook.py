"""In a notebook what takes long shows a bar, and elsewhere nothing; a name of before still works."""

import sys
from types import SimpleNamespace

import pytest
import tqdm.auto

import attnviz
from attnviz import arguments


class ZMQInteractiveShell:
    """Named like the shell of a Jupyter kernel."""


@pytest.fixture
def bars(monkeypatch):
    """The bars that were shown: what they are for, and the shares that they were told."""
    shown = []

    class Bar(tqdm.auto.tqdm):
        def __init__(self, *args, desc, **named):
            shown.append((desc, []))
            super().__init__(*args, desc=desc, disable=True, **named)
            self.n = 0.0

        def update(self, n=1):
            self.n += n
            shown[-1][1].append(self.n)

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    return shown


def test_a_notebook_sees_how_far_it_is(bars, embedded, door_trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    effects = attnviz.ablate(embedded, door_trace, "state:7", heads=[(0, 1), (4, 2)])
    [(what, shares)] = bars
    assert what == "ablate" and shares == sorted(shares) and shares[-1] == pytest.approx(1)
    told = []
    again = attnviz.ablate(embedded, door_trace, "state:7", heads=[(0, 1), (4, 2)], progress=told.append)
    assert len(bars) == 1 and told[-1] == pytest.approx(1)  # somebody else is told
    assert again.heads[4, 2] == effects.heads[4, 2]


@pytest.mark.parametrize(
    "shell", [None, SimpleNamespace(get_ipython=lambda: None), SimpleNamespace(get_ipython=object)]
)
def test_elsewhere_nothing_is_shown(shell, bars, embedded, door_trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", shell)
    attnviz.ablate(embedded, door_trace, "state:7", heads=[(0, 1)])
    assert not bars and not arguments.is_notebook()


def test_a_name_of_before_works_and_names_the_new_one():
    from attnviz.model import continuation

    with pytest.warns(DeprecationWarning, match="attnviz.generate now"):
        assert continuation.continue_text is attnviz.generate
