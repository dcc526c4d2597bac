"""What a person chooses before a training starts: from where, on which reviews, with which knobs; and the start itself."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import runs
from core.catalog import SOURCES
from core.config import DataConfig, RunConfig
from core.curves import last
from core.data.uploads import Upload
from core.events import EpochFinished, Failed
from core.figures.labels import duration
from core.presets import PRESETS, flags, preset
from core.runs import Run
from core.training.divergence import HIGH_LR, described, diverged, explained, remedy
from ui import compare, controls, launching, loaders, markdown, planning, tables

if TYPE_CHECKING:
    from core.training.estimate import Estimate


def which(found: Sequence[Run]) -> str | None:
    """The id of the training to look at, None for a new one."""
    trainings = {run.id: run.name for run in found if run.is_training}
    return launching.which("train", "training", runs.titles(trainings))


@dataclass(frozen=True, kw_only=True)
class Base:
    """What the knobs start from."""

    id: str
    """A preset, or a run."""
    preset: str
    config: RunConfig


def base(found: Sequence[Run]) -> Base:
    """A preset or an earlier training, as a person chooses."""
    earlier = {run.id: run for run in found if run.config is not None and preset_of(run) is not None}
    titles = runs.titles({id: run.name for id, run in earlier.items()})
    names = {name: name for name in PRESETS} | {f"/{id}": f"as in {title}" for id, title in titles.items()}
    id = controls.one("Start from", names, "train_from")
    run = earlier.get(id.removeprefix("/")) if id not in PRESETS else None
    if run is None or run.config is None:
        st.caption(markdown.literal(PRESETS[id].__doc__ or ""))
        return Base(id=id, preset=id, config=preset(id))
    return Base(id=id, preset=preset_of(run) or id, config=run.config)


def preset_of(run: Run) -> str | None:
    """The preset that a run started from; None where that is not on record."""
    given = [name for flag, name in pairwise(run.argv) if flag == "--preset"]
    return given[0] if given and given[0] in PRESETS else None


def source(key: str) -> str | Upload | None:
    """A set that is known by name, or a table that was uploaded; None while none is chosen. The URL holds it under `key`."""
    return tables.choose(key, {name: source.summary for name, source in SOURCES.items()})


def reviews(chosen: str | Upload, key: str) -> DataConfig | None:
    """The reviews to train on; None while their columns are not chosen. ValueError for a table that cannot be trained on."""
    if isinstance(chosen, str):
        return DataConfig(data=chosen)
    table = loaders.table(chosen.id)
    tables.preview(table)
    texts, label = tables.columns(table, key, labelled=True)
    if not texts or label is None:
        st.info("Choose the column of the texts and that of the labels.")
        return None
    tables.summary(loaders.prepared(chosen.id, texts, label))
    return DataConfig(data=str(chosen.path), text_column=texts[0] if len(texts) == 1 else texts, label_column=label)


def start(base: Base, source: str | Upload, config: RunConfig) -> None:
    """The button, and the command that it runs. One form starts one run, however often it is pressed."""
    argv = ["train", *flags(base.preset, config)]
    token = launching.token("train")
    name = f"{base.preset} on {source if isinstance(source, str) else source.name}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input("Name", key="train_name", placeholder=name, persist_state="session", max_chars=runs.NAME_LENGTH)
        asked = ("train", token, argv, typed or name)
        st.button("Start training", type="primary", icon=":material/play_arrow:", on_click=launching.launch, args=asked)
    if config.reviews.limit is not None:
        st.caption(f"At most {config.reviews.limit:,} reviews are used; empty `limit` to use all there are.")
    with st.expander("The exact command"):
        folder = (runs.runs_root() / token).absolute()
        st.code(shlex.join(["python", "-m", "core", *argv, "--out", str(folder)]), language="bash", wrap_lines=True)


def again(run: Run) -> None:
    """Starts a run that is over anew, as it was or with other knobs."""
    if preset_of(run) is None or run.config is None:
        return
    planning.after(run, preset_of(run) or "")
    asked = ("train", launching.token("train"), without_folder(run.argv), run.name)
    st.button("Train again", icon=":material/replay:", on_click=launching.launch, args=asked, key=f"train_again_{run.id}")
    st.button(
        "Change and train",
        icon=":material/tune:",
        on_click=_start_from,
        args=(run.id, run.config),
        key=f"train_change_{run.id}",
    )


def astray(run: Run) -> str | None:
    """What is wrong with how a run ended whose model is of an earlier epoch; None if nothing is."""
    epoch, n_classes = last(run.events, EpochFinished), run.figure("config", "model", "n_classes")
    if epoch is None or run.config is None or not n_classes or not diverged(epoch, round(n_classes)):
        return None
    return described(epoch, run.config, round(n_classes))


def guesses(run: Run) -> str | None:
    """That a run's model has learned nothing, and why; None if it is better than a guess, or its answers are not on record."""
    from core.evaluation.guessing import unlearned

    if run.model is None:
        return None
    try:
        nothing = unlearned(loaders.test_answers(run))
    except ValueError:
        return None
    return explained(nothing, run.config) if nothing and run.config is not None and _is_too_fast(run.config) else nothing


def _is_too_fast(config: RunConfig) -> bool:
    """Whether the learning rate alone explains that nothing was learned."""
    return config.training.lr > HIGH_LR


def safer(run: Run) -> None:
    """The button that starts a training anew that diverged or leapt over all minima, without what most likely made it do so."""
    preset = preset_of(run)
    failed = isinstance(run.last_event, Failed) and run.last_event.kind == "diverged"
    if preset is None or run.config is None:
        return
    if not (failed or astray(run) or (_is_too_fast(run.config) and guesses(run))):
        return
    other = remedy(run.config)
    asked = ("train", launching.token("train"), ["train", *flags(preset, other.config)], f"{run.name}, safer")
    label = f"Train again, but {other.change}"
    st.button(label, key=f"train_safer_{run.id}", type="primary", on_click=launching.launch, args=asked)


def without_folder(argv: Sequence[str]) -> list[str]:
    """A run's command without the folder that it went to."""
    kept, words = [], iter(argv)
    for word in words:
        if word == "--out":
            next(words, None)
        elif not word.startswith("--out="):
            kept.append(word)
    return kept


def _start_from(id: str, config: RunConfig) -> None:
    data = config.reviews.data
    st.query_params["train_run"] = launching.NEW
    st.query_params["train_from"] = f"/{id}"
    st.query_params["train_data"] = data if data in SOURCES else PurePath(data).parent.name


def expectation(config: RunConfig) -> None:
    """How long the run will take here and how much memory, where the machine is free to try."""
    alive = [run for run in loaders.runs() if run.is_alive]
    if alive:
        goes = "One run goes first" if len(alive) == 1 else f"{len(alive)} runs go first"
        if not all(run.is_training for run in alive):  # a try would be in what they measure
            st.caption(f"{goes}: how long this one takes can be tried when the machine is free.")
            return
        st.caption(f"{goes}. What follows was tried beside it: alone, a run is faster.")
    found = loaders.estimate(config)
    if config.epoch_name == "fit":
        _expected_of_fits(found)
        return
    execution = found.execution
    kernel = f", attention by {execution.backend}" if execution.backend else ""
    st.markdown(
        f"Expected here: **about {duration(found.seconds)}** for {found.steps:,} steps, and **about "
        f"{found.memory_bytes / 2**20:,.0f} MiB** for {found.n_parameters:,} parameters, their optimiser and a batch "
        f"({execution.device}, {execution.precision}{kernel})."
    )
    st.caption(
        "One layer and two of this very network were just tried on this machine; the rest is arithmetic. Starting and "
        "tokenising take some seconds more, Python and its libraries about 1 GiB."
    )


def costs(reviews: DataConfig) -> None:
    """What each preset takes here on these reviews, tried one after the other once a person wants to know."""
    if not st.toggle("What does each preset cost here?", key="train_costs", bind="query-params"):
        return
    place, rows = st.empty(), []
    for name in PRESETS:
        base = preset(name)
        rows.append({"preset": name} | _cost(replace(base, reviews=replace(reviews, limit=base.reviews.limit))))
        place.dataframe(pd.DataFrame(rows), hide_index=True)


def _cost(config: RunConfig) -> dict[str, str]:
    try:
        found = loaders.estimate(config)
    except ValueError as error:
        return {"time": compare.NO_VALUE, "memory": compare.NO_VALUE, "parameters": str(error)}
    memory = f"{found.memory_bytes / 2**20:,.0f} MiB"
    return {"time": f"about {duration(found.seconds)}", "memory": memory, "parameters": f"{found.n_parameters:,}"}


def _expected_of_fits(found: "Estimate") -> None:
    st.markdown(
        f"Expected here: **about {duration(found.seconds)}** for {found.steps} fits, and **about "
        f"{found.memory_bytes / 2**20:,.0f} MiB** for the reviews and what is made of them ({found.execution.device})."
    )
    st.caption(
        "Fits of made-up reviews as long as these were just tried on this machine; the rest is arithmetic. Starting and "
        "tokenising take some seconds more, Python and its libraries about 600 MiB."
    )
