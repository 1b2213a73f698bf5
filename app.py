"""What `streamlit run app.py` serves: the pages, each with its title, its question and the style of all from the first moment."""

from pathlib import Path
from posixpath import join

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route

from ui.components import ADDRESS, LOADER, script_of
from ui.part import Part
from ui.rooms import ROOMS
from ui.runtime import gate, metrics
from ui.runtime.serving import serving
from ui.shell.errors import uncaught
from ui.shell.first_look import first_look
from ui.shell.style import style
from ui.streamlit_fixes.deep_addresses import DEEP, NAME, to_last_part
from ui.streamlit_fixes.first_html import first_html
from ui.streamlit_fixes.no_address_lookup import look_nothing_up

look_nothing_up()
metrics.serve()

_STYLE = style()
_BASE = str(st.get_option("server.baseUrlPath")).strip("/")


def _first_html(address: str, page: Part) -> Route:
    html = first_html(page.title, _STYLE, LOADER, first_look(page), gate.refusal)
    return Route(join("/", _BASE, address), html)


app = st.App(
    Path(__file__).with_name("attention.py"),
    lifespan=serving,
    on_script_error=uncaught,
    middleware=[Middleware(gate.Gate)],
    routes=[
        Route(join("/", _BASE, ADDRESS), script_of),
        *(_first_html(page.address, page) for room in ROOMS for page in room.parts),
        _first_html("index.html", ROOMS[0].parts[0]),
        _first_html(NAME, ROOMS[0].parts[0]),  # which Streamlit shows at an address of no page
        Route(join("/", _BASE, DEEP), to_last_part),
    ],
)
