"""The app: `streamlit run app.py`."""

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Open the models beside the server, in a thread, so that the first review need not wait for torch."""
    from ui.warm import warm

    threading.Thread(target=warm, name="warm", daemon=True).start()
    yield


os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded: a model that waits leaves the cores to a run
app = st.App("ui/main.py", lifespan=lifespan)
