import json
from dataclasses import replace
from pathlib import Path

import pytest

from core import jobs, run_folder, runs
from core.catalog import CARDS
from core.config import SweepConfig
from core.events import Cancelled, Ceilings, CellMeasured, Failed, Finished, Queued, Started
from core.measure.predict import peak_bytes
from core.measure.roofline import attention_work
from core.measure.sweep import cell, cells
from core.measure.tables import Point, memory_table, time_table
from core.recorded import Recorded
from core.recorded import write as write_results
from ui import export, measuring, memory, memory_panels, memory_why, recorded
from ui.memory import MIB, Along

CONFIG = SweepConfig(lengths=(128, 512), batches=(2,), n_heads=4, d_head=16, device="cpu")
LENGTHS = Along(over="length", at=2)
CEILINGS = Ceilings(
    device="cpu", dtype="float32", operations_per_s=1e11, bytes_per_s=1e10, hardware="<b>EPYC</b>", date="2026-11-30"
)


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
    """Without runs, and without recorded results."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
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
    run_folder.write_request(folder, ["measure", "sweep", "--out", str(folder)], memory.title(config))
    run_folder.write_config(folder, config)
    for said in events:
        run_folder.append_event(folder, said)
    return folder


@pytest.fixture
def page(first_page, root):
    return first_page.run().switch_page("../pages/memory.py")


def said(page) -> str:
    """All that is said, without the escapes of Markdown."""
    kinds = (page.subheader, page.markdown, page.info, page.error, page.caption)
    return " ".join(element.value for kind in kinds for element in kind).replace("\\", "")


def charts(page) -> dict[str, list[str]]:
    """The names of the lines of each chart, by the end of its key."""
    specs = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
    return {spec["layout"]["yaxis"].get("title", {}).get("text", "?"): [t.get("name") for t in spec["data"]] for spec in specs}


def button(page, label: str):
    return next(button for button in page.button if button.label == label)


def pills(page, key: str):
    return next(group for group in page.get("button_group") if group.key == key)


# Sentences and tables


def test_the_headline_says_how_much_memory_and_whether_it_was_measured():
    ratio = peak_bytes(cell(CONFIG, "eager", 512)) / peak_bytes(cell(CONFIG, "sdpa", 512))
    told = f"at 512 tokens: eager takes {ratio:.1f} times the memory of sdpa: "
    assert memory.headline(CONFIG, LENGTHS, ALL).startswith(f"Measured {told}")
    assert memory.headline(CONFIG, LENGTHS, []).startswith(f"Predicted {told}")
    assert memory.headline(CONFIG, LENGTHS, ALL[:2]).startswith("Measured at 128 tokens: ")
    assert "Choose eager and another" in memory.headline(replace(CONFIG, backends=("sdpa",)), LENGTHS, [])


def test_the_finding_says_how_much_time():
    assert memory.findings(CONFIG, LENGTHS, ALL)[0] == (
        "In time, at 128 tokens sdpa is 2.0 times faster than eager here (640 ms against 1,280 ms), and "
        "at 512 tokens sdpa is 2.0 times faster than eager here (2,560 ms against 5,120 ms)."
    )


def test_slower_is_called_slower_and_what_varies_more_is_not_called_a_difference():
    slower = [event(0, median_s=0.01, spread_s=0.001), event(1, median_s=0.03, spread_s=0.001)]
    assert "sdpa is 3.0 times slower than eager here (30.0 ms against 10.0 ms)" in memory.findings(CONFIG, LENGTHS, slower)[0]
    assert memory.unsure(CONFIG, LENGTHS, slower) == set()
    noisy = [event(0, median_s=0.01, spread_s=0.04), event(1, median_s=0.03, spread_s=0.01)]
    assert "cannot be told apart" in memory.findings(CONFIG, LENGTHS, noisy)[0]
    assert memory.unsure(CONFIG, LENGTHS, noisy) == {("sdpa", 128)}


def test_a_busy_machine_gives_no_verdict_on_time():
    busy = [event(0, median_s=0.01, spread_s=0.001), event(1, median_s=0.03, spread_s=0.001, others=0.43)]
    told = "In time, at 128 tokens there is no verdict on sdpa and eager, since others used 43% of the machine while this"
    assert memory.findings(CONFIG, LENGTHS, busy)[0].startswith(told)
    assert memory.unsure(CONFIG, LENGTHS, busy) == {("sdpa", 128)}
    assert "becomes the faster one" not in memory.findings(CONFIG, LENGTHS, [*busy, *ALL[2:]])[0]
    row = memory.table(CONFIG, busy, "").iloc[1]
    assert (row["others used"], row["remarks"]) == (
        pytest.approx(43), "no verdict on its time: others used 43% of the machine while this was measured",
    )  # fmt: skip
    taken = memory_panels.taken(CONFIG, busy, LENGTHS, None, memory.table(CONFIG, busy, ""))
    for text in (export.as_html(taken, ""), memory_panels.HOW):
        assert "faster" not in text.replace(memory_panels.HOW, "") and "no verdict" in text


@pytest.mark.parametrize(("apart", "ring"), [(0.999, True), (1.001, False)])
def test_bars_that_touch_are_no_verdict(apart, ring):
    pair = [event(0, median_s=0.5, spread_s=0.2), event(1, median_s=0.5 + 0.3 * apart, spread_s=0.4)]
    eager, sdpa = memory_panels.figures(CONFIG, LENGTHS, pair, log=False)["Time"].data[:2]
    top, bottom = eager.y[0] + eager.error_y.array[0], sdpa.y[0] - sdpa.error_y.arrayminus[0]
    assert (memory.unsure(CONFIG, LENGTHS, pair) == {("sdpa", 128)}) == (bottom <= top) == ring


@pytest.mark.parametrize("spread", [0.0, 9.0])
def test_where_one_overtakes_the_other_is_said(spread):
    slower = [event(0, median_s=1.0), event(1, median_s=1.5, spread_s=spread)]
    crossing = "; it becomes the faster one between 128 and 512 tokens."
    assert memory.findings(CONFIG, LENGTHS, [*slower, *ALL[2:]])[0].endswith(crossing)
    assert not memory.findings(CONFIG, LENGTHS, ALL)[0].endswith(crossing)
    back = [*ALL[:2], event(2, median_s=1.0), event(3, median_s=1.5)]
    assert not any("becomes the faster" in sentence for sentence in memory.findings(CONFIG, LENGTHS, back))


def test_from_where_on_memory_is_saved_is_said():
    even = [event(0, peak_bytes=100 * MIB), event(1, peak_bytes=99 * MIB), *ALL[2:]]
    told = "In memory, sdpa saves from 512 tokens on; below, the two take as much."
    assert told in memory.findings(CONFIG, LENGTHS, even) and told not in memory.findings(CONFIG, LENGTHS, ALL)


def test_as_much_memory_is_not_called_a_saving_nor_is_more():
    assert memory.memory_sentence("eager", "sdpa", 104, 100).startswith("eager and sdpa take as much memory")
    assert memory.memory_sentence("eager", "bilstm", 100, 200).startswith("bilstm takes 2.0 times the memory of eager: ")


def test_where_only_flash_ran_the_finding_says_so():
    gone = event(2, peak_bytes=None, median_s=None, why_not="does not fit: needs about 9.0 GiB")
    found = memory.findings(CONFIG, LENGTHS, [ALL[0], ALL[1], gone, ALL[3]])
    assert any(sentence.startswith("At 512 tokens eager was not to be measured, sdpa took") for sentence in found)


def test_the_table_has_every_cell_and_says_why_a_figure_is_missing():
    refused = event(1, peak_bytes=None, median_s=None, spread_s=None, n_repeats=0, why_not="does not fit")
    frame = memory.table(CONFIG, [ALL[0], refused], "not measured: the run was stopped")
    assert frame["remarks"].tolist()[1:] == ["does not fit"] + ["not measured: the run was stopped"] * 2
    assert frame["measured MiB"].isna().tolist() == [False, True, True, True]
    assert frame["prediction is off by"].iloc[0] == 0 and frame["predicted MiB"].notna().all()


def test_the_table_says_what_is_not_predicted():
    odd = replace(CONFIG, backends=("cudnn",), lengths=(128,))
    of = CellMeasured(**(vars(ALL[0]) | {"backend": "cudnn"}))
    for measured in ([of], []):
        assert "no prediction: cudnn says only when it runs" in memory.table(odd, measured, "")["remarks"].iloc[0]


def test_what_was_measured_on_another_device_stays_there():
    there = [replace(one, device="cuda") for one in ALL]
    assert memory.table(replace(CONFIG, device="auto"), there, "?")["measured MiB"].notna().all()


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_the_longest_that_fits_fits_and_one_more_does_not(backend):
    free = 10 * MIB
    length = int(memory.fits(CONFIG, backend, LENGTHS, free).removeprefix("up to ").replace(",", ""))
    assert peak_bytes(cell(CONFIG, backend, length)) <= free < peak_bytes(cell(CONFIG, backend, length + 1))
    assert memory.fits(CONFIG, backend, LENGTHS, 0) == "none"
    assert memory.fits(CONFIG, backend, LENGTHS, 2**60) == "65,536 and more"


def test_cards_without_a_kernel_for_bfloat16_promise_nothing():
    frame = memory.cards(replace(CONFIG, dtype="bfloat16"), LENGTHS).set_index("card")
    assert frame.loc["T4 16 GB", "sdpa"].startswith("n/a") and not frame.loc["T4 16 GB", "eager"].startswith("n/a")
    assert not frame.loc["A100 80 GB", "sdpa"].startswith("n/a")
    assert list(frame.index) == [card.name for card in CARDS.values()]


def test_predicted_lines_reach_from_the_first_place_to_the_last():
    assert memory.between(100, 1000)[0] == 100 and memory.between(100, 1000)[-1] == 1000
    assert list(memory.predicted(CONFIG, LENGTHS)["eager"])[-1] == 512
    assert memory.between(7, 7) == [7]
    several = replace(CONFIG, batches=(2, 8))
    found = memory.predicted(several, Along(over="batch", at=128))["eager"]
    assert found[8] == peak_bytes(replace(cell(CONFIG, "eager", 128), batch=8)) and min(found) == 2


def point(**other) -> Point:
    return Point(**dict(label="sdpa", what="backward", length=128, batch=2, shape="4 × 16, 1 layer, float32", value=3.0 * MIB,
                        hardware="H200", date="2026-11-29") | other)  # fmt: skip


def test_what_was_recorded_of_the_same_shape_lies_along_a_sweep_in_order_between_its_ends():
    same = [point(length=512, value=5.0), point(), point(hardware="EPYC")]
    others = [point(batch=3), point(what="step"), point(shape="8 × 16, 1 layer, float32"), point(label="flex"),
              point(length=64), point(length=1024)]  # fmt: skip
    found = memory.kept(CONFIG, LENGTHS, same + others)
    assert found == {("sdpa", "H200, 2026-11-29"): {128: 3.0 * MIB, 512: 5.0}, ("sdpa", "EPYC, 2026-11-29"): {128: 3.0 * MIB}}
    assert list(found["sdpa", "H200, 2026-11-29"]) == [128, 512]
    several = replace(CONFIG, batches=(2, 3))
    assert memory.kept(several, Along(over="batch", at=128), [point(batch=3), point()]) == {
        ("sdpa", "H200, 2026-11-29"): {2: 3.0 * MIB, 3: 3.0 * MIB}
    }


def test_a_batch_and_a_length_are_two_ways_through_one_sweep():
    other = [replace(one, batch=8) for one in ALL]
    assert LENGTHS.here([*ALL, *other]) == ALL
    assert [one.batch for one in Along(over="batch", at=512).here([*ALL, *other])] == [2, 2, 8, 8]
    assert "at 8 reviews at once sdpa is" in " ".join(
        memory.findings(replace(CONFIG, batches=(2, 8)), Along(over="batch", at=512), [*ALL, *other])
    )


# Why, and what fits


def test_the_matrices_of_a_cell_are_counted():
    told = memory_why.matrix_sentence(replace(CONFIG, n_layers=3), LENGTHS)
    assert "512 × 512. There are 24 such matrices" in told and told.endswith(f"{4 * 24 * 512**2 // MIB} MiB.")


def test_what_moves_is_compared_and_what_a_kernel_waits_for_is_said():
    work = memory_why.work(CONFIG, LENGTHS, 512)
    ratio = attention_work(cell(CONFIG, "eager", 512)).bytes_moved / attention_work(cell(CONFIG, "sdpa", 512)).bytes_moved
    assert memory_why.work_sentence(work) == (
        f"eager moves {ratio:.1f} times the bytes of sdpa. sdpa computes 1.17 times as much as eager, since sdpa keeps no "
        "weights and makes them again."
    )
    slow = replace(CEILINGS, bytes_per_s=1.0)
    frame = memory_why.work_table(work, slow, LENGTHS, 512, ALL)
    assert frame["waits for"].tolist() == ["memory"] * 2 and frame["whole cell measured, ms"].tolist() == [
        "5,120.00",
        "2,560.00",
    ]
    fast = memory_why.work_table(work, replace(CEILINGS, bytes_per_s=1e30), LENGTHS, 512, [])
    assert fast["waits for"].tolist() == ["arithmetic"] * 2 and set(fast["whole cell measured, ms"]) == {"n/a"}
    alone = [*ALL[2:3], replace(ALL[3], attention_s=0.25, others=0.43)]
    timed = memory_why.work_table(work, slow, LENGTHS, 512, alone)
    assert timed["attention measured, ms"].tolist() == ["n/a", "250.00"]
    assert timed["remarks"].tolist() == ["", "others used 43% of the machine while this was measured"]
    assert memory_why.attention_s(LENGTHS, 512, alone) == {"sdpa": 0.25}
    told = "No verdict on what attention reached: others used 43% of the machine while this was measured."
    assert told in memory_why.work_note(slow, LENGTHS, 512, alone) and told not in memory_why.work_note(
        slow, LENGTHS, 128, alone
    )
    assert "waits for" not in memory_why.work_table(work, None, LENGTHS, 512, []).columns


def test_parts_of_a_peak_are_all_of_it():
    for label, parts in memory_why.parts(CONFIG, LENGTHS, 512).items():
        assert sum(parts.values()) == peak_bytes(cell(CONFIG, label, 512))


def test_the_largest_batch_stands_beside_the_rule_of_thumb(monkeypatch):
    monkeypatch.setattr("ui.memory_why.device_memory", lambda device: 2 * 10**9)
    here = memory_why.largest_batches(CONFIG, 512).iloc[0]
    assert here["rule of thumb"] == f"{10**9 // (512 * 64 * 32):,}"
    batch = int(here["eager, predicted"].replace(",", ""))
    at = [peak_bytes(replace(cell(CONFIG, "eager", 512), batch=n)) for n in (batch, batch + 1)]
    assert at[0] <= 2 * 10**9 < at[1]


def test_what_this_machine_showed_of_a_batch_is_said():
    refused = replace(ALL[2], batch=64, peak_bytes=None, why_not="does not fit: needs about 9.0 GiB")
    told = memory_why.batches_measured(CONFIG, 512, [*ALL, refused])
    assert told[0].startswith("Measured here: eager ran at batch 2 with ") and ", predicted " in told[0]
    assert told[1] == "eager at batch 64 does not fit: needs about 9.0 GiB." and len(told) == 3


# The page


def test_before_anything_is_measured_the_prediction_is_there(page):
    page.run()
    assert not page.exception
    assert page.title[0].value == "Memory"
    assert "Predicted at 2,048 tokens: eager takes" in page.subheader[0].value.replace("\\", "")
    assert charts(page)["peak memory (MiB)"] == ["eager, predicted", "sdpa, predicted"]
    assert "Time is measured, never predicted" in said(page)


def test_every_control_is_in_the_sweep_that_is_started_and_in_the_address(page, launched, root):
    page.run()
    pills(page, "memory_what").set_value("forward")
    page.selectbox(key="memory_dtype").set_value("bfloat16")
    for knob, value in (("n_heads", 5), ("d_head", 24), ("n_layers", 2)):
        page.number_input(key=f"memory_{knob}").set_value(value)
    page.toggle(key="memory_bilstm").set_value(True)
    pills(page, "memory_lengths").set_value([64, 256])
    pills(page, "memory_batches").set_value([4, 16])
    page.run()
    button(page, "Measure").click().run()
    assert not page.exception
    ((argv, folder, title, config),) = launched
    assert config == SweepConfig(
        networks=("encoder", "bilstm"), lengths=(64, 256), what="forward", batches=(4, 16), n_heads=5, d_head=24, n_layers=2,
        dtype="bfloat16", device="cpu",
    )  # fmt: skip
    assert argv[:2] == ["measure", "sweep"] and folder.parent == root
    assert title == "forward, batch 4 to 16, 5 × 24, 2 layers, bfloat16, 64 to 256 tokens"


def test_checkpointing_is_asked_for_by_its_name(page, launched):
    page.run()
    page.toggle(key="memory_checkpointing").set_value(True).run()
    button(page, "Measure").click().run()
    assert launched[0][3].checkpointing and "checkpointing" in launched[0][2]


def test_a_kernel_that_cannot_run_here_says_why(page, launched):
    page.run()
    pills(page, "memory_backends").set_value(["chunked", "varlen", "sdpa", "flex"]).run()
    assert not page.exception
    told = said(page)
    assert "varlen: it runs on cuda alone, not on cpu; use 'eager' or 'sdpa'." in told
    assert "flex: it has no backward pass on cpu" in told and "chunked:" not in told
    button(page, "Measure").click().run()
    assert launched[0][3].backends == ("sdpa", "chunked", "flex", "varlen")


@pytest.mark.parametrize(
    ("key", "asked", "told", "chosen"),
    [
        ("memory_lengths", ["8192"], None, [8192]),
        ("memory_lengths", ["512", "3000"], "3000 (memory_lengths), which cannot be shown here: 512 is", [512]),
        ("memory_batches", ["5"], "5 (memory_batches), which cannot be shown here: 8 is", [8]),
        ("memory_backends", ["flash", "sdpa"], "flash (memory_backends), which cannot be shown here: sdpa is", ["sdpa"]),
    ],
)  # fmt: skip
def test_what_an_address_asks_for_is_chosen_or_something_else_said_to_be_shown(page, key, asked, told, chosen):
    page.query_params[key] = asked
    page.run()
    assert not page.exception and list(pills(page, key).value) == chosen
    said = [warning.value.replace("\\", "") for warning in page.warning]
    assert said == ([f"The address asks for {told} shown instead."] if told else [])


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("memory_backends", "choose at least one kernel, or a BiLSTM"),
        ("memory_lengths", "choose at least one number of tokens"),
        ("memory_batches", "choose at least one number of reviews"),
    ],
)
def test_nothing_chosen_is_asked_for_in_words(page, key, told):
    page.run()
    pills(page, key).set_value([]).run()
    assert not page.exception
    assert told in said(page)


def test_one_form_starts_one_run_however_often_it_is_pressed(page, launched):
    page.run()
    token = page.session_state["memory_token"]
    button(page, "Measure").click().run()
    assert launched[0][1].name == token != page.session_state["memory_token"]
    assert page.query_params["memory_run"] in (token, [token])


def test_a_finished_sweep_is_found_again_by_its_address(page, root):
    write(root, "a", Started(device="cpu"), CEILINGS, *ALL, Finished())
    page.query_params["memory_run"] = "a"
    page.run()
    assert not page.exception
    assert "Measured at 512 tokens: eager takes" in said(page)
    drawn = charts(page)
    assert drawn["peak memory (MiB)"] == [f"{name}, {how}" for how in ("predicted", "measured") for name in ("eager", "sdpa")]
    assert drawn["time of one run (ms)"] == ["eager, measured", "sdpa, measured"]
    assert drawn["billion operations a second"] == ["this machine, measured", "eager, at best", "sdpa, at best"]
    assert "<b>EPYC</b>" in said(page) and "\\<b\\>EPYC" in " ".join(caption.value for caption in page.caption)


def test_charts_of_several_batches_go_along_either(page, root):
    config = replace(CONFIG, batches=(2, 4))
    write(root, "a", Started(device="cpu"), *ALL, *(replace(one, batch=4) for one in ALL), Finished(), config=config)
    page.query_params["memory_run"] = "a"
    page.run()
    assert "at 512 tokens" in said(page) and page.selectbox(key="memory_at_batch").value == 4
    pills(page, "memory_over").set_value("reviews at once").run()
    assert not page.exception
    assert page.selectbox(key="memory_at_length").value == 512 and "Measured at 4 reviews at once" in said(page)


def test_the_way_to_the_projector_takes_along_what_is_looked_at(page, root):
    write(root, "a", Started(device="cpu"), *ALL, Finished())
    page.query_params.update({"memory_run": "a", "memory_log": "false"})
    page.run()
    assert [link.proto.url for link in page.get("link_button")] == ["?present_log=false&memory_run=a&present=1"]


def test_a_projector_shows_what_was_looked_at(page, root):
    config = replace(CONFIG, batches=(2, 4))
    write(root, "a", Started(device="cpu"), *ALL, *(replace(one, batch=4) for one in ALL), Finished(), config=config)
    asked = {"memory_run": "a", "present": "1", "present_log": "false", "present_over": "reviews at once"}
    page.query_params.update(asked | {"present_at_length": "128"})
    page.run()
    assert not page.exception and page.title[0].value.startswith("Measured at 4 reviews at once")
    axis = json.loads(page.get("plotly_chart")[0].proto.spec)["layout"]["xaxis"]
    assert axis["type"] == "linear" and axis["title"]["text"] == "reviews at once"
    page.query_params["present_over"] = "tokens"
    page.query_params["present_at_batch"] = "2"
    assert page.run().title[0].value.startswith("Measured at 512 tokens")


def tab(page, root, name: str):
    write(root, "a", Started(device="cpu"), *ALL, Finished())
    page.query_params["memory_run"] = "a"
    page.query_params["memory_tab"] = name
    page.run()
    assert not page.exception
    return page


def test_a_tab_says_where_the_bytes_are(page, root):
    drawn = charts(tab(page, root, "Where the bytes are"))
    assert "attention weights kept" in drawn["?"] and "Predicted at 512 tokens" in said(page)


def test_a_tab_says_what_fits(page, root):
    frames = [frame.value for frame in tab(page, root, "What fits").dataframe]
    assert frames[0]["device"].tolist()[1:] == frames[1]["card"].tolist() == [card.name for card in CARDS.values()]
    assert "Measured here: sdpa ran at batch 2" in said(page) and "All predicted, none measured there" in said(page)


def test_a_tab_has_every_figure_to_take_away(page, root):
    tab(page, root, "All figures")
    assert page.dataframe[0].value["measured MiB"].notna().all()
    assert "measure sweep" in page.code[0].value
    buttons = page.get("download_button")
    assert [each.proto.label for each in buttons] == ["Download CSV", "Download Markdown", "Download HTML"]
    assert all(each.proto.ignore_rerun for each in buttons)  # or the second of two quick clicks would find no file


def test_a_file_to_take_away_needs_nothing_else(root):
    write(root, "a", Started(device="cpu"), *ALL, Finished())
    taken = memory_panels.taken(CONFIG, ALL, LENGTHS, runs.read("a"), memory.table(CONFIG, ALL, ""))
    text = export.as_html(taken, "http://localhost/memory?memory_run=a")
    assert "Measured at 512 tokens" in text and "&lt;b&gt;EPYC&lt;/b&gt;" in text and "core measure sweep" in text
    assert "<td>5</td>" in text and "<th>prediction is off by %</th>" in text and "<th>reserved MiB</th>" not in text
    assert "<p>Run a: " in text and "memory?memory_run=a" in text
    assert "<script src" not in text and "<b>EPYC</b>" not in text.replace("\\u003c", "<")


def test_what_was_recorded_elsewhere_is_drawn_on_both_charts_and_said(page, root):
    tables = (memory_table(ALL), time_table([replace(one, others=0.0) for one in ALL]))
    there = Recorded(title="t", hardware="<b>H200</b>", date="2026-11-29", command="c", versions=(), tables=tables)
    write_results(there, root.parent / "RESULTS_x")
    page.query_params.update({"memory_lengths": ["128", "512"], "memory_n_heads": "4", "memory_d_head": "16"})
    page.query_params["memory_batches"] = "2"
    page.run()
    assert not page.exception
    names = [f"{name}, recorded,<br>&lt;b&gt;H200&lt;/b&gt;, 2026-11-29" for name in ("eager", "sdpa")]
    drawn = charts(page)
    assert drawn["peak memory (MiB)"] == ["eager, predicted", "sdpa, predicted", *names]
    assert drawn["time of one run (ms)"] == names and memory_panels.KEPT in said(page)
    page.selectbox(key="memory_dtype").set_value("bfloat16").run()
    assert names[0] not in charts(page)["peak memory (MiB)"] and memory_panels.KEPT not in said(page)


def test_a_projector_sees_a_sentence_and_charts_and_nothing_to_press(page, root):
    write(root, "a", Started(device="cpu"), *ALL, Finished())
    page.query_params["present"] = "1"
    page.run()
    assert not page.exception
    assert "Measured at 512 tokens" in page.title[0].value and set(charts(page)) == {
        "peak memory (MiB)",
        "time of one run (ms)",
    }
    assert not [*page.button, *page.selectbox, *page.toggle, *page.number_input, *page.get("button_group"), *page.caption]


@pytest.mark.parametrize(
    ("last", "told", "missing"),
    [
        (Cancelled(), "Stopped after 1 of 4 cells.", "not measured: the run was stopped"),
        (Failed(reason="no <b>room</b>"), "Failed: no <b>room</b>.", "not measured: the run ended before"),
        (None, "Interrupted: the process is gone, and it did not say why", "not measured: the run ended before"),
    ],
)
def test_a_sweep_that_ended_early_says_so_keeps_what_it_has_and_goes_on(page, root, monkeypatch, last, told, missing):
    resumed = []
    monkeypatch.setattr(jobs, "resume", resumed.append)
    folder = write(root, "a", Started(device="cpu"), ALL[0], *([last] if last else []))
    (folder / "log.txt").write_text("at work\nthe end of it\n")
    page.query_params["memory_run"], page.query_params["memory_tab"] = "a", "All figures"
    page.run()
    assert not page.exception
    assert told in said(page)
    assert page.dataframe[0].value["remarks"].tolist()[1:] == [missing] * 3
    assert ("the end of it" in page.code[0].value) == (not isinstance(last, Cancelled))
    assert [each.label for each in page.button] == ["Resume"]
    page.button[0].click().run()
    assert resumed == [folder] and not page.exception


def test_a_sweep_that_went_on_has_each_cell_once(root):
    write(root, "a", Started(device="cpu"), ALL[0], replace(ALL[0], median_s=9.0), Finished())
    assert measuring.measured(runs.read("a")) == [replace(ALL[0], median_s=9.0)]


def test_a_living_sweep_says_how_far_it_is_and_can_be_stopped(page, root):
    folder = write(root, "a", Started(device="cpu"), ALL[0])
    with jobs._owned(folder):
        page.query_params["memory_run"] = "a"
        page.run()
        told = page.get("progress")[0].proto.text
        assert told.startswith("1 of 4 cells measured, about ") and " left: sdpa at 128 tokens, batch 2" in told
        page.button(key="memory_stop_a").click().run()
        assert (folder / "cancel").exists() and "Stopping: what has been measured is kept." in said(page)
        assert not page.button  # neither to stop again nor to resume what is still alive
    assert not page.exception


@pytest.mark.parametrize(
    ("said_before", "now"), [((), "measuring what this machine reaches"), ((CEILINGS,), "eager at 128 tokens")]
)
def test_a_sweep_says_what_it_measures_first(page, root, said_before, now):
    folder = write(root, "a", Started(device="cpu"), *said_before)
    with jobs._owned(folder):
        page.query_params["memory_run"] = "a"
        page.run()
        assert now in page.get("progress")[0].proto.text


@pytest.mark.parametrize("figures", [{"median_s": -5.0}, {"median_s": float("nan")}, {"length": 0}, {"peak_bytes": 10**30}])
def test_a_cell_of_a_damaged_file_is_left_out_by_name_and_the_others_are_shown(page, root, figures):
    write(root, "a", Started(device="cpu"), *ALL, replace(ALL[0], **figures), Finished())
    page.query_params["memory_run"] = "a"
    page.run()
    assert not page.exception and not page.error
    assert "Left out, since it cannot have been measured so: eager at" in page.warning[0].value.replace("\\", "")
    assert "sdpa, measured" in charts(page)["peak memory (MiB)"] and "Measured at 512 tokens" in said(page)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_machine_that_reaches_what_none_does_is_not_drawn(page, root, rate):
    write(root, "a", Started(device="cpu"), CEILINGS, replace(CEILINGS, operations_per_s=rate), *ALL, Finished())
    page.query_params["memory_run"] = "a"
    page.run()
    assert not page.exception and not page.error
    assert "What attention moves" in said(page) and "billion operations a second" not in charts(page)


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
    run_folder.write_request(training, ["train"], None)
    page.query_params["memory_run"] = "b"
    page.run()
    assert not page.exception
    assert "There is no measurement" in page.warning[0].value
    assert len(page.selectbox(key="memory_run").options) == 2
    assert runs.read("b").sweep is None
