"""What is slow to import, imported beside the server, once a person has something to look at."""

import gc
import threading

page_painted = threading.Event()
"""Set when a page has been drawn once. Imports hold the interpreter, so that before it they would only delay the page."""


def warm() -> None:
    """Import torch and transformers and open the shipped models, when a page has been drawn, or soon without one."""
    page_painted.wait(timeout=20)
    from ui import loaders

    for name in loaders.model_names()[: len(loaders.SHIPPED)]:
        try:
            loaders.model(name)
        except ValueError:
            pass  # the page that asks for it says so
    loaders.examples()
    gc.collect()
    gc.freeze()  # Streamlit looks for garbage after each run of a page, which among all that torch has imported takes 0.4 s
