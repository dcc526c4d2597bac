import json
from dataclasses import replace
from pathlib import Path

import pytest

from core import jobs, runs
from core.catalog import CARDS
from core.config import SweepConfig
from core.measure.predict import peak_bytes
from core.measure.sweep import cell, cells
from core.records import Cancelled, CellMeasured, Failed, Finished, Queued, Started
from ui import memory

CONFIG = SweepConfig(lengths=(128, 512), batches=(2,), n_heads=4, d_head=16, device="cpu")


def event(number: int, **figures) -> CellMeasured:
    """The cell of that number in `CONFIG`, measured as predicted, in 10 ms a token for eager and 5 for sdpa."""
    of = cells(CONFIG)[number]
    seconds = of.length / (100 if of.backend == "eager" else 200)
    found = dict(peak_bytes=peak_bytes(of), source="VmHWM above baseline", median_s=seconds, spread_s=0.01, n_repeats=5,
                 kernel="aten::k", hardware="<b>EPYC</b>", why_not=None)  # fmt: skip
    return CellMeasured(**vars(of), **(found | figures))


ALL = [event(number) for number in range(4)]


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def launched(monkeypatch) -> list[tuple]:
    """What would have been started."""
    asked = []
    monkeypatch.setattr(jobs, "launch", lambda argv, folder, title, config: asked.append((argv, folder, title, config)))
    return asked


def write(root: Path, id: str, *events, config: SweepConfig = CONFIG) -> Path:
    folder = root / id
    folder.mkdir(parents=True)
    jobs._write_request(folder, ["measure", "sweep", "--out", str(folder)], memory.title(config))
    jobs._write_config(folder, config)
    for said in events:
        jobs.append_event(folder, said)
    return folder


@pytest.fixture
def page(first_page, root):
    return first_page.run().switch_page("../pages/memory.py")


def said(page) -> str:
    return " ".join(element.value for kind in (page.markdown, page.info, page.error, page.caption) for element in kind)


# Sentences and tables


def test_the_finding_says_how_much_memory_and_time():
    first, second = memory.findings(CONFIG, ALL)
    ratio = peak_bytes(cell(CONFIG, "eager", 512)) / peak_bytes(cell(CONFIG, "sdpa", 512))
    assert first.startswith(f"At 512 tokens eager takes {ratio:.1f} times the memory of sdpa: ")
    assert second == (
        "In time, at 128 tokens sdpa is 2.0 times faster than eager here (640 ms against 1,280 ms) and "
        "at 512 tokens sdpa is 2.0 times faster than eager here (2,560 ms against 5,120 ms)."
    )


def test_slower_is_called_slower_and_what_varies_more_is_not_called_a_difference():
    slower = [event(0, median_s=0.01, spread_s=0.001), event(1, median_s=0.03, spread_s=0.001)]
    assert "sdpa is 3.0 times slower than eager here (30.0 ms against 10.0 ms)" in memory.findings(CONFIG, slower)[1]
    noisy = [event(0, median_s=0.01, spread_s=0.04), event(1, median_s=0.03, spread_s=0.01)]
    assert "cannot be told apart" in memory.findings(CONFIG, noisy)[1]


def test_as_much_memory_is_not_called_a_saving():
    assert memory.memory_sentence("eager", "sdpa", 104, 100).startswith("eager and sdpa take as much memory")


def test_where_only_flash_ran_the_finding_says_so():
    gone = event(2, peak_bytes=None, median_s=None, why_not="does not fit: needs about 9.0 GiB")
    found = memory.findings(CONFIG, [ALL[0], ALL[1], gone, ALL[3]])
    assert any(sentence.startswith("At 128 tokens eager takes") for sentence in found)
    assert any(sentence.startswith("At 512 tokens eager was not to be measured, sdpa took") for sentence in found)


def test_the_table_has_every_cell_and_says_why_a_figure_is_missing():
    refused = event(1, peak_bytes=None, median_s=None, spread_s=None, n_repeats=0, why_not="does not fit")
    frame = memory.table(CONFIG, [ALL[0], refused], "not measured: the run was stopped")
    assert frame["why not"].tolist()[1:] == ["does not fit"] + ["not measured: the run was stopped"] * 2
    assert frame["measured MiB"].isna().tolist() == [False, True, True, True]
    assert frame["prediction is off by"].iloc[0] == 0 and frame["predicted MiB"].notna().all()


def test_what_was_measured_on_another_device_stays_there():
    there = [replace(one, device="cuda") for one in ALL]
    assert memory.table(replace(CONFIG, device="auto"), there, "?")["measured MiB"].notna().all()


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_the_longest_that_fits_fits_and_one_more_does_not(backend):
    free = 10 * 2**20
    length = int(memory.fits(CONFIG, backend, free).removeprefix("up to ").replace(",", ""))
    assert peak_bytes(cell(CONFIG, backend, length)) <= free < peak_bytes(cell(CONFIG, backend, length + 1))
    assert memory.fits(CONFIG, backend, 0) == "none"
    assert memory.fits(CONFIG, backend, 2**60) == "65,536 and more"


def test_cards_without_a_kernel_for_bfloat16_promise_nothing():
    frame = memory.cards(replace(CONFIG, dtype="bfloat16")).set_index("card")
    assert frame.loc["T4 16 GB", "sdpa"].startswith("n/a") and not frame.loc["T4 16 GB", "eager"].startswith("n/a")
    assert not frame.loc["A100 80 GB", "sdpa"].startswith("n/a")
    assert list(frame.index) == [card.name for card in CARDS.values()]


def test_predicted_lines_reach_from_the_first_length_to_the_last():
    assert memory.between(100, 1000)[0] == 100 and memory.between(100, 1000)[-1] == 1000
    assert list(memory.predicted(CONFIG)["eager"])[-1] == 512
    assert memory.between(7, 7) == [7]


# The page


def test_before_anything_is_measured_the_prediction_is_there(page):
    page.run()
    assert not page.exception
    assert page.title[0].value == "Memory"
    assert "Predicted at 2,048 tokens: eager takes" in said(page).replace("\\", "")
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    assert [trace["name"] for trace in figure["data"]] == ["eager, predicted", "sdpa, predicted"]
    assert "Time is measured, never predicted" in said(page)
    assert page.dataframe[0].value["card"].tolist() == [card.name for card in CARDS.values()]


def test_every_control_is_in_the_sweep_that_is_started_and_in_the_address(page, launched, root):
    page.run()
    page.selectbox(key="memory_what").set_value("forward")
    page.selectbox(key="memory_dtype").set_value("bfloat16")
    for knob, value in (("batch", 3), ("n_heads", 5), ("d_head", 24), ("n_layers", 2)):
        page.number_input(key=f"memory_{knob}").set_value(value)
    page.get("button_group")[0].set_value([64, 256])
    page.run()
    page.button[0].click().run()
    assert not page.exception
    ((argv, folder, title, config),) = launched
    assert config == SweepConfig(
        lengths=(64, 256), what="forward", batches=(3,), n_heads=5, d_head=24, n_layers=2, dtype="bfloat16", device="cpu"
    )
    assert argv[:2] == ["measure", "sweep"] and folder.parent == root
    assert title == "forward, batch 3, 5 × 24, 2 layers, bfloat16, 64 to 256 tokens"


def test_a_kernel_that_cannot_run_here_says_why(page, launched):
    page.run()
    page.get("button_group")[1].set_value(["chunked", "varlen", "sdpa", "flex"]).run()
    assert not page.exception
    told = said(page).replace("\\", "")
    assert "varlen: it runs on cuda alone, not on cpu; use 'eager' or 'sdpa'." in told
    assert "flex: it has no backward pass on cpu" in told and "chunked:" not in told
    page.button[0].click().run()
    assert launched[0][3].backends == ("sdpa", "chunked", "flex", "varlen")


def test_no_kernel_is_asked_for_in_words(page):
    page.run()
    page.get("button_group")[1].set_value([]).run()
    assert not page.exception
    assert "choose at least one kernel" in said(page)


def test_one_form_starts_one_run_however_often_it_is_pressed(page, launched):
    page.run()
    token = page.session_state["memory_token"]
    page.button[0].click().run()
    assert launched[0][1].name == token != page.session_state["memory_token"]
    assert page.query_params["memory_run"] in (token, [token])


def test_no_length_is_asked_for_in_words(page):
    page.run()
    page.get("button_group")[0].set_value([]).run()
    assert not page.exception
    assert "choose at least one number of tokens" in said(page)


def test_a_finished_sweep_is_found_again_by_its_address(page, root):
    write(root, "a", Started(device="cpu"), *ALL, Finished())
    page.query_params["memory_run"] = "a"
    page.run()
    assert not page.exception
    assert "At 512 tokens eager takes" in said(page)
    charts = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
    assert [trace["name"] for trace in charts[0]["data"]] == [
        f"{name}, {how}" for how in ("predicted", "measured") for name in ("eager", "sdpa")
    ]
    assert [trace["name"] for trace in charts[1]["data"]] == ["eager, measured", "sdpa, measured"]
    assert page.dataframe[0].value["measured MiB"].notna().all()
    assert "\\<b\\>EPYC" in said(page)
    assert "measure sweep" in page.code[0].value


@pytest.mark.parametrize(
    ("last", "told", "missing"),
    [
        (Cancelled(), "Stopped after 1 of 4 cells.", "not measured: the run was stopped"),
        (Failed(reason="no <b>room</b>"), "The run is failed: no <b>room</b>.", "not measured: the run ended before"),
        (None, "The run is interrupted: its process ended without a word.", "not measured: the run ended before"),
    ],
)
def test_a_sweep_that_ended_early_says_so_and_keeps_what_it_has(page, root, last, told, missing):
    folder = write(root, "a", Started(device="cpu"), ALL[0], *([last] if last else []))
    (folder / "log.txt").write_text("at work\nthe end of it\n")
    page.query_params["memory_run"] = "a"
    page.run()
    assert not page.exception
    assert told in said(page).replace("\\", "")
    assert page.dataframe[0].value["why not"].tolist()[1:] == [missing] * 3
    assert ("the end of it" in page.code[0].value) == (not isinstance(last, Cancelled))
    assert not page.button  # nothing to stop


def test_a_living_sweep_says_how_far_it_is_and_can_be_stopped(page, root):
    folder = write(root, "a", Started(device="cpu"), ALL[0])
    with jobs._owned(folder):
        page.query_params["memory_run"] = "a"
        page.run()
        assert "1 of 4 cells measured: sdpa at 128 tokens" in page.get("progress")[0].proto.text
        page.button(key="memory_stop_a").click().run()
        assert (folder / "cancel").exists() and page.button(key="memory_stop_a").disabled
    assert not page.exception


def test_a_waiting_sweep_says_how_many_are_ahead(page, root):
    folder = write(root, "a", Queued(ahead=2))
    with jobs._owned(folder):
        page.query_params["memory_run"] = "a"
        page.run()
    assert "Queued: 2 runs go first" in said(page)


def test_other_runs_and_unknown_ones_are_no_measurements(page, root):
    write(root, "a", Started(device="cpu"), *ALL, Finished())
    training = root / "b"
    training.mkdir()
    jobs._write_request(training, ["train"], None)
    page.query_params["memory_run"] = "b"
    page.run()
    assert not page.exception
    assert "There is no measurement" in said(page)
    assert len(page.selectbox(key="memory_run").options) == 2
    assert runs.read("b").sweep is None
