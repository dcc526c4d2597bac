"""One table and one run of each architecture for all tests here."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from core import jobs
from core.artifact import Model, open_model
from core.config import RunConfig
from core.training.run import train
from tests import small_runs


@dataclass(frozen=True)
class Made:
    """A run that is over."""

    config: RunConfig
    out: Path
    model: Model


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def table(tmp_path_factory) -> Path:
    return small_runs.write_table(tmp_path_factory.mktemp("table") / "made.csv")


@pytest.fixture(scope="session", params=[*small_runs.ARCHITECTURES, "float16"])
def made(table, tmp_path_factory, request) -> Made:
    config = (
        small_runs.config(table, weights="float16") if request.param == "float16" else small_runs.config(table, request.param)
    )
    out = tmp_path_factory.mktemp(request.param) / "run"
    with jobs.hold(out, "cpu", config) as job:
        train(config, out, job.emit, ["train", "--out", "my run"], job.stopped)
    return Made(config, out, open_model(out / "model"))
