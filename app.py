"""The app: `streamlit run app.py`."""

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOKING_FOR_THE_SERVER = ("/_stcore/health", "/_stcore/host-config")
"""What a tab asks each second once it has lost its server."""


class Parting:
    """Ends the connection of a tab that looks for its server: kept alive by that, it would keep an ending server alive too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def parting(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        looks = scope["type"] == "http" and scope["path"] in LOOKING_FOR_THE_SERVER
        await self._app(scope, receive, parting if looks else send)


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Open the models beside the server, in a thread, so that the first review need not wait for torch."""
    from ui.warm import warm

    threading.Thread(target=warm, name="warm", daemon=True).start()
    yield


os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded: a model that waits leaves the cores to a run
app = st.App("ui/main.py", lifespan=lifespan, middleware=[Middleware(Parting)])
