"""One training as it goes: how it stands, its curves while they grow, and what became of it."""

from collections.abc import Sequence

import streamlit as st

from core import run_folder, runs
from core.artifact import model_folders
from core.curves import last
from core.events import EpochFinished, Event, Failed, Started, StepFinished, TableRead, TrainingStarted
from core.figures.curves import AXES, overlaid
from core.figures.labels import duration, interval, percent
from core.runs import Kept, Run
from ui import controls, launching, loaders, markdown, panels, training

POINTS = 400
"""Of a curve are drawn at most."""
TOGETHER = {("loss (nats)", ".2f"): {"training": "loss", "validation": "val_loss"}} | {
    axis: {axis[0]: name} for name, axis in AXES.items() if name not in ("loss", "val_loss")
}
"""Title and format of each chart, and the curves in it by the names of their lines."""


def follow(id: str) -> None:
    """The run of that id, looked at again each second while its process lives. ValueError if there is none."""
    run = runs.read(id)
    launching.watch(_draw, run)


def _draw(id: str, known: run_folder.State) -> None:
    if id not in st.query_params.get_all("train_run"):
        st.rerun()  # a button below asked for another training, and a fragment by itself goes on with this one
    with panels.refusals():
        run = runs.read(id)
        if run.state != known:
            st.rerun()  # the page around may offer other things now, and looks again at another pace
        st.subheader(markdown.literal(run.name), anchor=False)
        if run.is_alive:
            _stop(run)  # above what grows, so that it stays where it is while it is pressed
            _standing(run)
        else:
            _outcome(run)
        _curves(run)
        _origin(run)


def _standing(run: Run) -> None:
    if run.state == "queued":
        launching.waiting(run)
    else:
        _progress(run.events)


def _progress(events: Sequence[Event]) -> None:
    begun = max((i for i, event in enumerate(events) if isinstance(event, Started)), default=0)  # by the process that lives
    started, step = last(events[begun:], TrainingStarted), last(events, StepFinished)
    if started is None:
        st.info("Reading and tokenising the reviews.", icon=":material/hourglass_empty:")
        return
    kernel = f", attention by {started.backend}" if started.backend else ""
    machine = f"{started.device}, {started.precision}{kernel}"
    if step is None:
        st.progress(*_fitted(started, last(events[begun:], EpochFinished), machine))
        return
    rate = f"{step.reviews_per_s:,.0f} reviews/s"
    st.progress(
        min(step.step / max(step.total_steps, 1), 1.0),
        f"Epoch {step.epoch} of {started.epochs}, {place(step)} · {rate} · {time_left(started, step)} · {machine}",
    )
    _numbers(step, last(events, EpochFinished))


def _fitted(started: TrainingStarted, fit: EpochFinished | None, machine: str) -> tuple[float, str]:
    """Share and sentence before the first step, and of a linear model, which makes none."""
    size = f"{started.n_parameters:,} parameters, {started.n_train:,} reviews, {machine}"
    if fit is None:
        return 0.0, size
    left_s = fit.elapsed_s / fit.epoch * (started.epochs - fit.epoch)
    left = f"{_about(left_s)} left" if left_s else "measuring and storing"
    said = f"Fit {fit.epoch} of {started.epochs} · validation accuracy {percent(fit.val_accuracy)} · {left} · {size}"
    return fit.epoch / started.epochs, said


def place(step: StepFinished) -> str:
    """How far a training is."""
    return f"step {step.step:,} of {step.total_steps:,}"


def time_left(started: TrainingStarted, step: StepFinished) -> str:
    """Until the last step, in words."""
    left = seconds_left(started, step)
    return "measuring and storing" if left is None else f"{_about(left)} left"


def _about(seconds: float) -> str:
    return duration(seconds) if seconds < 1 else f"about {duration(seconds)}"


def _numbers(step: StepFinished, epoch: EpochFinished | None) -> None:
    found = {
        "training loss": _short(step.loss, ".3f"),
        "learning rate": f"{step.lr:.2g}",
        "gradient norm": _short(step.gradient_norm, ".2f"),
    }
    if step.largest_logit is not None:
        found["largest attention logit"] = _short(step.largest_logit, ".1f")
    found["validation accuracy"] = "–" if epoch is None else percent(epoch.val_accuracy)
    with st.grid(len(found), min_column_width=130):
        for label, value in found.items():
            st.metric(label, value)


def _short(value: float, usual: str) -> str:
    """A number that its place on the page has room for, however wild the training is."""
    return format(value, usual if value < 1_000 else ".2g")


def seconds_left(started: TrainingStarted, step: StepFinished) -> float | None:
    """Until the last step, at the rate until now; None once that step is done, and while there is no rate."""
    reviews = started.n_train * started.epochs * (1 - step.step / max(step.total_steps, 1))
    return reviews / step.reviews_per_s if reviews > 0 and step.reviews_per_s > 0 else None


def _stop(run: Run) -> None:
    does = "takes it out of the queue" if run.state == "queued" else "stores the best weights so far, and can be taken back"
    with st.container(horizontal=True, vertical_alignment="center"):
        launching.stop(run, f"train_stop_{run.id}", f"It {does}.")
        if not launching.is_asked_to_stop(run):
            safe = f" Step {run.kept.step:,} is safe: it takes {_mebibytes(run.kept)} on disk." if run.kept else ""
            st.caption(f"Stopping {does}.{safe}")
            return
        st.caption("Asked to stop: it stores the best weights so far and measures them.", width="content")
        launching.end(run, f"train_end_{run.id}", "Without storing anything more.")


def _outcome(run: Run) -> None:
    if run.state == "succeeded" and (wrong := training.astray(run)):
        st.warning(f"{finished(run)} {markdown.sentence(f'later it diverged: {wrong}')}", icon=":material/warning:")
    elif run.state == "succeeded" and (nothing := training.guesses(run)):
        st.warning(f"{finished(run)} {markdown.sentence(nothing)}", icon=":material/warning:")
    elif run.state == "succeeded":
        st.success(finished(run), icon=":material/check:")
    elif run.state == "cancelled":
        kept = finished(run) if run.model else "There is no model of it."
        st.info(f"Stopped. {kept}{going_on(run)}", icon=":material/stop:")
    elif run.state == "failed":
        st.error(markdown.sentence(launching.reason(run)) + markdown.literal(going_on(run)), icon=":material/error:")
    else:
        st.warning(markdown.literal(f"Interrupted: {launching.reason(run)}.{going_on(run)}"), icon=":material/warning:")
    for problem in run.problems:
        st.warning(markdown.sentence(problem), icon=":material/warning:")
    if run.state in ("failed", "interrupted"):
        launching.printed(run)
    _doors(run)


def going_on(run: Run) -> str:
    """What is left to go on from."""
    if not _resumes(run):
        return ""
    step = last(run.events, StepFinished)
    if run.kept is None:
        return " Resume begins it anew." if step is None else " No step was stored yet: Resume begins it anew."
    of = "" if step is None else f" of {step.total_steps:,}"
    return f" Resume goes on after step {run.kept.step:,}{of}, which takes {_mebibytes(run.kept)} on disk."


def _resumes(run: Run) -> bool:
    """Whether to go on in the same run is what one would do: not where it would end in the same way again."""
    kind = run.last_event.kind if isinstance(run.last_event, Failed) else None
    if kind in ("diverged", "memory") or (run.kept is None and kind == "other"):
        return False
    return run.can_resume and (run.kept is not None or run.state != "cancelled")


def _mebibytes(kept: Kept) -> str:
    return f"{kept.n_bytes / 2**20:,.1f} MiB"


def finished(run: Run) -> str:
    """What a model that was made can do."""
    parts = []
    for side in ("validation", "test"):
        accuracy, low, high, n = (run.figure("metrics", side, name) for name in ("accuracy", "low", "high", "n"))
        if accuracy is not None and low is not None and high is not None and n is not None:
            parts.append(f"{side} {accuracy:.1%} ({interval(low, high)}, n = {n:,.0f})")
    seconds = run.figure("training", "train_s")
    took = "" if seconds is None else f"Trained for {duration(seconds)}. "
    return f"{took}Accuracy: {', '.join(parts)}." if parts else f"{took}Its figures are not on record."


def _doors(run: Run) -> None:
    """What one would do next."""
    beside = [f"models/{name}" for name in loaders.SHIPPED]
    with st.container(horizontal=True, vertical_alignment="center"):
        if _resumes(run):
            launching.resume(run, f"train_resume_{run.id}", "In the same run, with the same settings and curves.")
        training.safer(run)
        if run.model is not None and model_folders().get(run.id) == run.model:  # not another one of that name
            asked = {"inspect_models": [run.id]}
            st.page_link("../pages/inspect.py", label="Inspect", icon=":material/search:", query_params=asked)
        if run.model is not None:
            asked = {"compare_runs": [run.id, *beside]}
            st.page_link("../pages/compare.py", label="Compare", icon=":material/compare_arrows:", query_params=asked)
        training.again(run)


def _curves(run: Run) -> None:
    own = {name: curve.thinned(POINTS) for name, curve in loaders.curves(run).items() if name in AXES}
    if not own:
        return
    step = last(run.events, StepFinished)
    steps = None if step is None else controls.steps(step.total_steps, "train_steps")
    cells = st.grid(3, min_column_width=300, gap="medium")
    for (title, y_format), names in TOGETHER.items():
        drawn = {label: own[name] for label, name in names.items() if name in own}
        if drawn:
            title = title if len(drawn) > 1 else next(AXES[name][0] for name in names.values() if name in own)
            with cells.cell():
                figure, key = overlaid(drawn, title, y_format, steps, run.step_name), next(iter(names.values()))
                panels.chart(figure, key=f"train_curve_{key}", alt=f"{title} over the {run.step_name}s")


def _origin(run: Run) -> None:
    notes = last(run.events, TableRead)
    if notes is not None:
        st.markdown("**What was made of the table**")
        st.markdown("\n".join(f"- {markdown.sentence(note)}" for note in notes.notes))
    if run.command is not None:
        st.caption("The exact command:")
        st.code(run.command, language="bash", wrap_lines=True)
