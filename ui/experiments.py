"""An experiment: what a person chooses before it, how it stands while it goes, and the way to what came of it."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core import runs
from core.ablate import argv
from core.ablations import ABLATIONS, why_not
from core.config import MOST, MOST_SEEDS, ExperimentConfig, RunConfig
from core.curves import last
from core.events import MemberFinished, MemberStarted, StepFinished
from core.experiments import estimated_s, gather, left_s, members, progress
from core.figures.labels import duration
from core.presets import PRESETS, preset
from core.run_folder import State
from core.runs import Run
from ui import controls, experiment_panels, launching, live, loaders, markdown, panels, training

FIRST = ("positions-none", "heads-1", "residual-off")
"""Ablations that are chosen before a person does, where the base has them."""


def which(found: Sequence[Run]) -> str | None:
    """The id of the experiment to look at, None for a new one."""
    experiments = {run.id: run.name for run in found if run.experiment is not None}
    return launching.which("ablate", "experiment", runs.titles(experiments))


# Before it


def choose() -> tuple[str, ExperimentConfig] | None:
    """The preset of the base, and the experiment that a person describes; None while its reviews are not chosen.

    ValueError for one that cannot be.
    """
    with st.grid(2, min_column_width=340, gap="medium") as sides:
        with sides.cell():
            name = controls.one("Base", {name: name for name in PRESETS}, "ablate_base")
            st.caption(markdown.literal(PRESETS[name].__doc__ or ""))
        with sides.cell():
            source = training.source("ablate_data")
    reviews = None if source is None else training.reviews(source, "ablate_data")
    if reviews is None:
        return None
    base = preset(name)
    possible = [ablation for ablation in ABLATIONS if why_not(base, ablation) is None]
    if not possible:
        raise ValueError(f"nothing of {name} can be changed one thing at a time; choose another base")
    chosen = controls.several(
        "Ablations", {ablation: _asked(ablation) for ablation in possible}, "ablate_ablations", len(possible),
        [ablation for ablation in FIRST if ablation in possible] or possible[:1],
    )  # fmt: skip
    base, seeds = _size(base, name)
    if not chosen:
        raise ValueError("choose at least one ablation")
    base = replace(base, reviews=replace(reviews, limit=base.reviews.limit))
    return name, ExperimentConfig(base=base, ablations=tuple(chosen), seeds=tuple(range(seeds)))


def _asked(ablation: str) -> str:
    return f"{ablation}: {ABLATIONS[ablation].question}"


def _size(base: RunConfig, name: str) -> tuple[RunConfig, int]:
    """The base with as many reviews and epochs as a person has time for, and the number of seeds."""
    fields = st.grid(4, min_column_width=150)
    with fields.cell():
        seeds = st.number_input(
            "Seeds", 1, MOST_SEEDS, 3, key="ablate_seeds", bind="query-params",
            help="Each ablation and its base are trained with the same ones. A seed draws weights, order, dropout, and which "
            "reviews a limit leaves; with one alone, nothing can be told from chance.",
        )  # fmt: skip
    with fields.cell():
        limit = st.number_input(
            "Reviews at most", 200, MOST, base.reviews.limit or 5_000, 1_000, key=f"ablate_limit_{name}",
            persist_state="session", help="Before they are split into training, validation and test.",
        )  # fmt: skip
    training = base.training
    if base.epoch_name == "epoch":
        with fields.cell():
            key = f"ablate_epochs_{name}"
            epochs = st.number_input("Epochs", 1, 100, min(training.epochs, 3), key=key, persist_state="session")
            training = replace(training, epochs=epochs)
    with fields.cell():
        length = st.number_input(
            "Tokens of a review at most", 8, MOST, base.model.max_len, 64, key=f"ablate_max_len_{name}",
            persist_state="session", help="Longer reviews are cut.",
        )  # fmt: skip
    smaller = replace(
        base, model=replace(base.model, max_len=length), reviews=replace(base.reviews, limit=limit),
        training=training,
    )  # fmt: skip
    return smaller, seeds


def start(name: str, config: ExperimentConfig) -> None:
    """The button, and the command that it runs. One form starts one run, however often it is pressed."""
    command, token = argv(config, name), launching.token("ablate")
    every = members(config)
    asked = ("ablate", token, command, f"{name}: {', '.join(config.ablations)}"[: runs.NAME_LENGTH], config)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Start", type="primary", icon=":material/play_arrow:", on_click=launching.launch, args=asked)
        st.caption(f"{len(every)} trainings, one after the other.", width="content")
    with st.expander("The exact command"):
        folder = (runs.runs_root() / token).absolute()
        st.code(shlex.join(["python", "-m", "core", *command, "--out", str(folder)]), language="bash", wrap_lines=True)


def expectation(config: ExperimentConfig) -> None:
    """How long it will take here, where the machine is free to try."""
    if any(run.is_alive for run in loaders.runs()):
        st.caption("Another run has the machine: how long this one takes can be tried when it is free.")
        return
    seconds = estimated_s(config, lambda each: loaders.estimate(each).seconds)
    st.markdown(
        f"Expected here: **about {duration(seconds)}**, and some seconds more for each training to start and be measured."
    )
    st.caption(
        "Each of these networks was just tried on this machine for a moment. What was trained before is not trained again."
    )


# While it goes


def follow(id: str) -> None:
    """The experiment of that id, looked at again each second while its process lives. ValueError if there is none."""
    run = runs.read(id)
    if run.experiment is None:
        raise ValueError(f"the run {id!r} is no experiment")
    st.subheader(markdown.literal(run.name), anchor=False)
    launching.watch(_look, run, _landed(run))
    experiment_panels.results(gather(run.experiment, run.events), run)


def _landed(run: Run) -> int:
    return sum(isinstance(event, MemberFinished) for event in run.events)


def _look(id: str, state: State, landed: int) -> None:
    """How the run stands; results are drawn again when there is something new, and not each second."""
    with panels.refusals():
        run = runs.read(id)
        if (run.state, _landed(run)) != (state, landed):
            st.rerun()
        _standing(run)
        experiment_panels.matrix(run)


def _standing(run: Run) -> None:
    assert run.experiment is not None
    done, all_of_them = progress(run.experiment, run.events)
    if run.state == "queued":
        launching.waiting(run)
    elif run.state == "running":
        left = left_s(run.experiment, run.events)
        goes = f", about {duration(left)} left" if left and done < all_of_them else ""
        st.progress(min(done / all_of_them, 1.0), markdown.literal(f"{done} of {all_of_them} trained{goes}{_now(run)}"))
    elif run.state == "cancelled":
        st.info(f"Stopped after {done} of {all_of_them} trainings.", icon=":material/stop:")
    elif run.state != "succeeded":
        launching.ended(run, f" after {done} of {all_of_them} trainings")
    if run.is_alive:
        launching.stop(
            run, f"ablate_stop_{run.id}", "What is trained is kept, and the training in progress goes on from there."
        )
    elif run.can_resume and done < all_of_them:
        launching.resume(run, f"ablate_resume_{run.id}", "What is trained already is not trained again.")


def _now(run: Run) -> str:
    """What is trained at this moment."""
    started = last(run.events, MemberStarted)
    if started is None or run.events[-1] is not started:
        return ": reading the reviews"
    step = last(runs.read(started.run).events, StepFinished)
    place = "starting" if step is None else live.place(step)
    return f": {started.ablation}, seed {started.seed}, {place}"
