"""Experiments that were done apart become one result, which can be read back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.ablations import gathered, main
from core import run_folder
from core.checked import to_json
from core.config import ExperimentConfig
from core.events import Event, ExperimentStarted, Finished, MemberFinished
from core.experiments import BASE, from_table, gather
from core.presets import preset
from core.recorded import read

SETTLED = ExperimentStarted(device="cpu", precision="bfloat16", backend="eager")
BASIS = preset("tiny")
ACCURACY = {BASE: (0.80, 0.82, 0.81), "heads-1": (0.70, 0.715, 0.705), "gelu": (0.80, 0.81, 0.83)}


def member(root: Path, id: str, name: str, seed: int) -> MemberFinished:
    """One that is over, with what its model says of itself."""
    run = f"{id}/members/{name}-{seed}"
    (root / run / "model").mkdir(parents=True)
    record = {
        "finished": f"2026-11-{28 + seed}T12:00:00+00:00", "config": to_json(BASIS),
        "versions": {"torch": "2.13.0", "python": "3.11"},
        "hardware": {"cpu": "AMD EPYC 9654", "threads": 1, "cores": 2, "device": "cpu"},
    }  # fmt: skip
    (root / run / "model" / "run.json").write_text(json.dumps(record))
    return MemberFinished(
        ablation=name, seed=seed, fingerprint=f"{name}-{seed}", run=run, n=500, accuracy=ACCURACY[name][seed], f1=0.8,
        val_accuracy=0.8, train_s=3.0, elapsed_s=4.0, peak_bytes=2**20, peak_source="predicted", n_parameters=10,
    )  # fmt: skip


def write(root: Path, id: str, ablations: tuple[str, ...], seeds: tuple[int, ...], settled=SETTLED, **knobs) -> Path:
    base = replace(BASIS, training=replace(BASIS.training, seed=seeds[0], **knobs))
    landed = [member(root, id, name, seed) for seed in seeds for name in (BASE, *ablations)]
    events: list[Event] = [settled, *landed, Finished()]
    run_folder.write_request(root / id, ["ablate"], None)
    run_folder.write_config(root / id, ExperimentConfig(base=base, ablations=ablations, seeds=seeds))
    for event in events:
        run_folder.append_event(root / id, event)
    return root / id


@pytest.fixture
def folders(tmp_path) -> list[Path]:
    """Three: other seeds, and of the last seed other ablations."""
    both = ("heads-1", "gelu")
    return [write(tmp_path, "a", both, (0, 1)), write(tmp_path, "b", ("heads-1",), (2,)), write(tmp_path, "c", ("gelu",), (2,))]


def test_they_are_told_as_one_experiment(folders):
    found = gathered(folders, ["Busy."])
    config = ExperimentConfig(base=BASIS, ablations=("heads-1", "gelu"), seeds=(0, 1, 2))
    events = [event for folder in folders for event in run_folder.read_events(folder)[0]]
    expected = gather(config, events)
    assert from_table(found.table("members")) == expected
    assert found.table("ablations").column("verdict") == [None, *(outcome.verdict for outcome in expected[1:])]
    assert found.table("ablations").column("difference")[1] == pytest.approx(-10.333, abs=1e-3)
    assert found.table("ablations").column("seeds") == [3, 3, 3] and found.notes == ("Busy.",)
    assert (found.hardware, found.date, found.versions) == ("AMD EPYC 9654, 1 of 2 cores", "2026-11-30", ("torch 2.13.0",))
    assert found.command == "python -m core ablate --base tiny --ablations heads-1,gelu --seeds 3 --out runs/ablations"


def test_they_are_written_and_read_back(folders, tmp_path, capsys):
    main([*map(str, folders), "--out", str(tmp_path), "--note", "Busy."])
    (one,) = read(tmp_path)
    assert one.title == "Ablations of tiny with 3 seeds" and "heads-1" in capsys.readouterr().out
    assert [path.name for path in tmp_path.glob("RESULTS_*.md")] == [f"RESULTS_ablations_AMD-EPYC-9654_{one.date}.md"]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"lr": 0.1}, "got 2 bases that differ"),
        ({"settled": replace(SETTLED, precision="float32")}, "got experiments that did not compute alike"),
    ],
)
def test_what_does_not_belong_together_is_refused(folders, tmp_path, other, said):
    folders.append(write(tmp_path, "d", ("gelu",), (2,), **other))
    with pytest.raises(SystemExit, match=said):
        main([*map(str, folders), "--out", str(tmp_path)])


def test_a_run_that_is_no_experiment_is_refused(folders, tmp_path):
    (tmp_path / "e").mkdir()
    run_folder.write_config(tmp_path / "e", BASIS)
    with pytest.raises(ValueError, match="got e, expected experiments"):
        gathered([*folders, tmp_path / "e"])
