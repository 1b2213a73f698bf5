"""How much memory the server and its workers take with both bundled models loaded in each of them."""

import asyncio
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from benchmarks.load import megabytes, sentence
from benchmarks.measurement import Measurement
from tests.browser.conftest import running_server
from tests.visitor import visit
from ui.limits import WORKERS

BUDGET_MB = 1800.0
LOADED = re.compile(r"process=(\d+) event=model_loaded model=(\S+)")
MOST_ROUNDS = 20
REST = 15.0
"""Seconds after the last visit in which server and workers give back what they no longer need."""


def measure() -> Iterator[Measurement]:
    """The proportional set size of all their processes: what they have alone, and their share of what they map together."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "app.log"
        with running_server(log) as app:
            n_loaded = 0
            for turn in range(MOST_ROUNDS):
                asyncio.run(_visit_at_once(app, turn))
                n_loaded = len(set(LOADED.findall(log.read_text())))
                if n_loaded == 2 * (1 + WORKERS):
                    break
            time.sleep(REST)
            yield Measurement(
                what="MB that the server and its workers hold, both bundled models in each",
                value=megabytes(urlsplit(app).port or 80),
                budget=BUDGET_MB,
                detail=f"{n_loaded} of {2 * (1 + WORKERS)} loaded",
            )


async def _visit_at_once(app: str, turn: int) -> None:
    """Verdicts on new sentences of one model, two for each worker."""
    model = (EMBEDDED, SMOLLM2)[turn % 2]

    async def a_visit(number: int) -> None:
        async with visit(app, "", text=sentence(number, turn), model=model) as visitor:
            await visitor.settle(300)

    await asyncio.gather(*(a_visit(number) for number in range(2 * WORKERS)))
