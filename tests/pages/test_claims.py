"""The page of claims: all of them, those of a theme or verdict, one with all that it rests on, and measuring it again."""

import json

import pytest

from core import jobs, run_folder
from core.claims import command
from core.claims.catalog import CLAIMS
from core.claims.figures import DISTANCES, of_loss, of_state
from core.config import ClaimConfig
from core.events import ClaimMeasured, Failed, Finished, Started
from ui.claims import figures, overview

GRADIENTS = {name(network, at): 1 / (1 + at) for name in (of_state, of_loss) for network in ("bilstm", "transformer")
             for at in DISTANCES} | {"seeds": 3}  # fmt: skip


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(command, "read", lambda folder: [])
    return tmp_path / "runs"


@pytest.fixture
def page(first_page, root):
    return first_page.run().switch_page("../pages/claims.py")


def write(root, id, *events, claim="scores-1.5-gb"):
    folder = root / id
    folder.mkdir(parents=True)
    run_folder.write_request(folder, command.argv(claim), "Claim <b>x</b>")
    run_folder.write_config(folder, ClaimConfig(claim=claim))
    for event in events:
        run_folder.append_event(folder, event)


def measured(claim, **found):
    names, values = list(found), list(found.values())
    return ClaimMeasured(claim=claim, names=names, values=values, hardware="<b>EPYC</b>", date="2026-11-30")


def said(page) -> str:
    kinds = (page.markdown, page.info, page.error, page.success, page.caption)
    return " ".join(element.value for kind in kinds for element in kind).replace("\\", "")


def test_every_claim_is_there_and_the_first_is_open(page):
    page.run()
    assert not page.exception
    assert page.dataframe[0].value["no."].tolist() == list(range(1, 50))
    assert "not shown: 49" in said(page) and CLAIMS["faster-epochs"].told in said(page)
    assert page.code[0].value == CLAIMS["faster-epochs"].command and not [
        b for b in page.button if b.label == "Measure it here"
    ]


def test_what_was_measured_stands_beside_its_rule(page, root):
    write(root, "1", Started(device="cpu"), measured("scores-1.5-gb", **{"scores, GiB": 1.5}), Finished())
    page.query_params["claims_claim"] = "scores-1.5-gb"
    page.run()
    assert "holds here: 1" in said(page) and "Measured on <b>EPYC</b>, 2026-11-30." in said(page)
    claim = CLAIMS["scores-1.5-gb"]
    for text in (claim.told, claim.question, claim.method, claim.rule, claim.source, "1.50 GiB."):
        assert text in said(page), text
    assert page.dataframe[1].value.to_dict("list") == {"value": ["1.50"], "figure": ["scores, GiB"]}


def test_themes_and_verdicts_choose_and_the_address_holds_them(page, root):
    write(root, "1", measured("scores-1.5-gb", **{"scores, GiB": 1.5}), Finished())
    page.query_params["claims_theme"] = "memory and size"
    page.query_params["claims_verdict"] = "holds here"
    page.run()
    assert page.dataframe[0].value["no."].tolist() == [6]
    page.session_state["claims_theme"] = ["training"]
    page.run()
    assert "choose others" in said(page) and not page.dataframe


def test_a_claim_is_measured_by_a_run_that_is_followed(page, root, monkeypatch):
    asked = []
    monkeypatch.setattr(jobs, "launch", lambda argv, folder, title, config: asked.append((argv, folder, title, config)))
    page.query_params["claims_claim"] = "parameters"
    page.run()
    next(button for button in page.button if button.label == "Measure it here").click().run()
    (argv, folder, title, config) = asked[0]
    assert (argv, title) == (["claims", "run", "parameters"], "Claim 49: parameters")
    assert config == ClaimConfig(claim="parameters") and page.query_params["claims_run"] in (folder.name, [folder.name])


@pytest.mark.parametrize("event, expected", [
    (Finished(), "was measured"), (Failed(reason="no <b>room</b>"), "Failed: no <b>room</b>."),
])  # fmt: skip
def test_what_became_of_a_measurement_is_said(page, root, event, expected):
    write(root, "1", Started(device="cpu"), event, claim="parameters")
    page.query_params["claims_run"] = "1"
    page.run()
    assert not page.exception and expected in said(page) and CLAIMS["parameters"].told in said(page)


def test_a_measurement_that_is_not_there_is_a_sentence(page, root):
    page.query_params["claims_run"] = "../x"
    page.run()
    assert not page.exception and "There is no measurement '../x' here" in said(page).replace("there", "There")


def test_gradients_are_drawn_where_there_are_some(page, root):
    write(root, "1", measured("lstm-forgets", **GRADIENTS), Finished(), claim="lstm-forgets")
    page.query_params["claims_claim"] = "lstm-forgets"
    page.run()
    specs = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
    assert [[trace["name"] for trace in spec["data"]] for spec in specs] == [["BiLSTM", "Transformer"]] * 2


def test_tables_hold_what_the_findings_hold(root):
    found = command.known()
    assert overview(found)["verdict"].tolist() == ["not shown"] * 49
    assert figures(found[0]).empty
