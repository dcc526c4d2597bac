"""What runs at this moment, in a few words on every page."""

import streamlit as st

from core import runs
from core.curves import last
from core.events import StepFinished, TrainingStarted
from core.experiments import progress
from core.runs import Run
from ui import live, markdown
from ui.ticking import ticking

SECONDS_BETWEEN_LOOKS = 3.0
NAME_LENGTH = 25


def line() -> None:
    """In the sidebar, where anything runs: a link to the run that has the machine, how far it is, and how many wait."""
    if runs.alive():  # a sidebar with an empty place has a line below the menu
        with st.sidebar:
            ticking(_draw, SECONDS_BETWEEN_LOOKS)()


def _draw() -> None:
    alive = runs.alive()
    for run in alive:
        if run.state == "running":
            page = page_of(run)
            st.page_link(
                f"../pages/{page}.py",
                label=markdown.literal(_short(run.name)),
                icon=":material/play_circle:",
                query_params={f"{page}_run": run.id},
            )
            st.caption(how_far(run))
    waiting = sum(run.state == "queued" for run in alive)
    if waiting:
        st.caption("1 run waits for its turn." if waiting == 1 else f"{waiting} runs wait for their turn.")


def page_of(run: Run) -> str:
    """The page that follows a run of its kind."""
    asked = {"memory": run.sweep, "ablate": run.experiment, "claims": run.claim, "backends": run.backends}
    return next((page for page, config in asked.items() if config is not None), "train")


def how_far(run: Run) -> str:
    """Where a run that has its device is."""
    started, step = last(run.events, TrainingStarted), last(run.events, StepFinished)
    if run.sweep is not None or run.claim is not None:
        return "Measuring."
    if run.experiment is not None:
        return "{} of {} trained.".format(*progress(run.experiment, run.events))
    if started is None or step is None:
        return "Starting."
    return f"{live.place(step)}, {live.time_left(started, step)}".capitalize()


def _short(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
