"""What happens when the server starts and when it ends: the default model and the worker processes are made ready, and ended.

One concept: the lifespan of the server. It is here and not with the first visitor, who would wait for all of it.
"""

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from attnviz.errors import AttnvizError
from attnviz.model.catalogue import default_model, offer
from ui.limits import WARM, WORKERS
from ui.work import cache, jobs
from ui.work.with_model import warm

_log = logging.getLogger(__name__)


@asynccontextmanager
async def serving(_: Any) -> AsyncIterator[None]:
    """From the start of the server to its end."""
    if WARM == "yes":
        threading.Thread(target=_make_ready, daemon=True, name="make ready").start()
    yield
    jobs.end()


def _make_ready() -> None:
    name = default_model()
    try:
        cache.model(name)
        jobs.Job([(warm, (offer(name).name,), {})] * WORKERS).wait()
    except AttnvizError as error:  # the first visitor is told, too
        _log.error("%s", error)
