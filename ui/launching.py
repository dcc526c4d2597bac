"""A run whatever it does: which one is looked at, how a page starts it, how it waits, is stopped and ends.

`page` is the first word of a page's keys: its address holds the run that it shows as `{page}_run`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from core import jobs, run_folder, runs
from core.disk import writing
from core.events import Failed, Interrupted, Queued
from core.runs import Run
from ui import address, controls, markdown, panels
from ui.ticking import ticking

NEW = "/new"
"""What the address calls a run that is not there yet: a folder's name has no slash."""
SECONDS_BETWEEN_LOOKS = 1.0
LOG_LINES = 20
GONE = "the process is gone, and it did not say why; the machine may have been restarted, or was out of memory or disk"


def which(page: str, kind: str, titles: Mapping[str, str]) -> str | None:
    """The id of the run to look at, None for a new one. The URL holds it, so that it is found again after all.

    `kind` is what such a run is called, and `titles` what each is called, by id. A projector, on which nothing is asked, shows
    the first one where the URL names none.
    """
    key, known = f"{page}_run", {NEW: f"A new {kind}"} | dict(titles)
    asked = st.query_params.get(key)
    if asked and asked not in known:
        address.tell(key, f"There is no {kind} {asked!r} here; it may have been deleted.")
    if controls.presenting():
        chosen = asked if asked in known else next(iter(titles), NEW)
    else:
        chosen = controls.one(kind.capitalize(), known, key) if titles else NEW
    return None if chosen == NEW else chosen


def dated(found: Sequence[Run]) -> dict[str, str]:
    """What to call runs by id whose names repeat: when they were made, too."""
    return {run.id: f"{run.created:%d %b %H:%M} · {run.name}" for run in found}


def watch(draw: Callable[..., None], run: Run, *known: object) -> None:
    """Draws how a run stands, again each second while its process lives; `draw` gets its id, its state and what is `known`."""
    ticking(draw, SECONDS_BETWEEN_LOOKS if run.is_alive else None)(run.id, run.state, *known)


def token(page: str) -> str:
    """The id of the run that the page's form starts: one form starts one run, however often it is pressed."""
    return st.session_state.setdefault(f"{page}_token", run_folder.new_id())


def launch(page: str, id: str, argv: Sequence[str], title: str, config: run_folder.Config | None = None) -> None:
    """Starts the run of that id, if it has not been started yet, and looks at it. `refusal` says why it could not be."""
    folder = runs.runs_root() / id
    try:
        with writing(f"{folder} cannot be made"):
            jobs.launch(argv, folder, title, config)
    except ValueError as error:
        st.session_state[f"{page}_refused"] = str(error)
        return
    st.session_state[f"{page}_token"] = run_folder.new_id()
    st.query_params[f"{page}_run"] = id


def refusal(page: str) -> None:
    """Why the run that was asked for last could not be started."""
    if f"{page}_refused" in st.session_state:
        panels.refused(st.session_state.pop(f"{page}_refused"))


def waiting(run: Run) -> None:
    """What a queued run waits for."""
    ahead = run.last_event.ahead if isinstance(run.last_event, Queued) else 0
    goes = "Starting" if not ahead else "Queued: 1 run goes first" if ahead == 1 else f"Queued: {ahead} runs go first"
    st.info(f"{goes}. It begins by itself, and needs neither this tab nor this page.", icon=":material/hourglass_empty:")


def stop(run: Run, key: str, help: str) -> None:
    """The button that asks a living run to stop."""
    _button("Stop", key, ask_to_stop, run, icon=":material/stop:", disabled=is_asked_to_stop(run), help=help)


def end(run: Run, key: str, help: str) -> None:
    """The button that ends a run that was asked to stop, at once."""
    _button("End it now", key, _end, run, help=help)


def _end(run: Run) -> None:
    with writing(f"the run cannot be ended in {run.folder}"):
        jobs.stop(runs.find(run.id), grace_s=0.0)


def ask_to_stop(run: Run) -> None:
    """Asks a run to stop. ValueError where there is no room for the question, which is a file, or no such run."""
    with writing(f"the run cannot be asked to stop in {run.folder}"):
        jobs.cancel(runs.find(run.id))


def is_asked_to_stop(run: Run) -> bool:
    """Whether a person asked a living run to stop."""
    return run.is_alive and (run.folder / "cancel").exists()


def reason(run: Run) -> str:
    """Why a run ended before it was done, a sentence without full stop."""
    return run.last_event.reason if isinstance(run.last_event, Failed | Interrupted) else GONE


def ended(run: Run, where: str = "") -> None:
    """That a run ended before it was done, `where` it was, why, and the end of what it printed."""
    st.error(markdown.literal(f"{run.state.capitalize()}{where}: {reason(run)}."), icon=":material/error:")
    printed(run)


def printed(run: Run) -> None:
    """The end of what a run printed, without the reason of its end, which stands above it."""
    lines = [line for line in run_folder.tail(run.folder, LOG_LINES) if not line.rstrip(".").endswith(reason(run))]
    if lines:
        st.code("\n".join(lines), language=None, wrap_lines=True)


def resume(run: Run, key: str, help: str) -> None:
    """The button that lets a run that is over go on from where it was."""
    _button("Resume", key, _go_on, run, icon=":material/play_arrow:", help=help)


def _go_on(run: Run) -> None:
    with writing(f"the run cannot go on in {run.folder}"):
        jobs.resume(runs.find(run.id))


def _button(label: str, key: str, act: Callable[[Run], None], run: Run, **looks: Any) -> None:
    """A button that does something to a run, by a callback: a click that comes while the page is drawn is heard, too."""
    st.button(label, key=key, on_click=_try, args=(act, run, key), **looks)
    refusal(key)


def _try(act: Callable[[Run], None], run: Run, key: str) -> None:
    try:
        act(run)
    except ValueError as error:
        st.session_state[f"{key}_refused"] = str(error)
