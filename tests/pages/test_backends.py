import json
import shutil

import pytest
from streamlit.testing.v1 import AppTest

from core import run_folder
from core.checked import to_json
from core.config import BackendsConfig, BiLSTMArchitecture, EncoderArchitecture, RunConfig
from core.events import BackendMeasured, Finished, Started
from ui import backends

EVENT = dict(n=64, others=0.0, hardware="here")
FOUND = [
    BackendMeasured(backend="eager", largest_difference=0.0, changed=0, median_s=2.0, spread_s=0.2, peak_bytes=2**24,
                    kernel="aten::bmm", why_not=None, **EVENT),
    BackendMeasured(backend="sdpa", largest_difference=1e-6, changed=0, median_s=1.0, spread_s=0.1, peak_bytes=2**22,
                    kernel="flash", why_not=None, **EVENT),
    BackendMeasured(backend="cudnn", largest_difference=None, changed=None, median_s=None, spread_s=None, peak_bytes=None,
                    kernel=None, why_not="it runs on cuda, not on cpu", **EVENT),
]  # fmt: skip


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def page(root, first_page) -> AppTest:
    return first_page.run().switch_page("../pages/backends.py").run()


def write(root, *events) -> str:
    id = run_folder.new_id()
    run_folder.make_folder(root / id, False)
    run_folder.write_config(root / id, BackendsConfig(model="models/cls"))
    for event in events:
        run_folder.append_event(root / id, event)
    return id


def test_only_transformers_are_offered(page, model_root, tmp_path, monkeypatch):
    """Others have no attention kernel; of what is not on record nobody knows."""
    shutil.copytree(model_root, tmp_path / "models")
    for name, network in (("imdb-bilstm", BiLSTMArchitecture()), ("cls", EncoderArchitecture())):
        record = {"config": to_json(RunConfig(model=network))}
        (tmp_path / "models" / name / "run.json").write_text(json.dumps(record))
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "models"))
    assert page.run().selectbox(key="backends_model").options == ["imdb-encoder", "cls", "one-head"]
    for name in ("imdb-encoder", "cls", "one-head"):
        shutil.rmtree(tmp_path / "models" / name)
    page.run()
    assert not page.exception and "none of these models is a Transformer" in page.error[0].value and not page.button


def test_a_comparison_is_offered(page):
    assert not page.exception and not page.error
    assert [button.label for button in page.button] == ["Compare"]


def test_one_that_has_ended_is_shown(root, page):
    page.query_params["backends_run"] = write(root, Started(device="cpu"), *FOUND, Finished())
    page.run()
    assert not page.exception and not page.error
    (table,) = page.dataframe
    assert list(table.value["kernel"]) == ["eager", "sdpa", "cudnn"]
    assert list(table.value["peak memory, MiB"])[:2] == [16, 4]
    assert table.value["why not"][2] == "it runs on cuda, not on cpu"
    time, memory = (json.loads(chart.proto.spec)["data"][0] for chart in page.get("plotly_chart"))
    assert time["y"] == memory["y"] == ["eager", "sdpa"]
    assert any("No answer to 64 reviews changes; logits of 2 kernels differ by 1.0e" in said.value.replace("\\", "")
               for said in page.markdown)  # fmt: skip


def test_a_kernel_that_changes_answers_is_named():
    changed = [FOUND[0], BackendMeasured(**vars(FOUND[1]) | {"changed": 3})]
    assert backends.finding(changed).startswith("sdpa changes 3 of 64 answers;")
    assert backends.finding(FOUND[:1]) == "no second kernel has answered yet"


def test_an_id_of_nothing_is_said(root, page):
    page.query_params["backends_run"] = "gone"
    page.run()
    assert "There is no comparison" in page.warning[0].value and len(page.warning) == 1
