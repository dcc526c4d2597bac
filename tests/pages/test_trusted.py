"""What was recorded of a model's evidence is shown for that model, known by its weights, and for no other."""

from dataclasses import replace

import pytest

from benchmarks.faithfulness import models, tables
from core.recorded import Column, Recorded, Table
from tests.benchmarks.test_faithfulness import FOUND
from tests.pages.test_evidence import explained
from ui import recorded, trusted

NAMES = Table(
    name="models", caption="", columns=(Column(name="model"), Column(name="weights")),
    rows=(("imdb-encoder", "aa"), ("imdb-bilstm", "bb")),
)  # fmt: skip
RECORDED = Recorded(
    title="Which evidence can be trusted", hardware="AMD EPYC", date="2026-11-30", command="python -m x", versions=("torch 2",),
    tables=(NAMES, *tables(FOUND)),
)  # fmt: skip


def test_a_model_is_known_by_its_weights():
    (occlusion,) = trusted.worth(RECORDED, "aa")
    assert (occlusion.evidence, occlusion.n, occlusion.share) == ("Occlusion", 3, pytest.approx(2 / 3))
    assert occlusion.deletion[0] == pytest.approx(0.25) and occlusion.verdict == "better than random in insertion alone"
    assert trusted.worth(RECORDED, "cc") == [] and trusted.worth(replace(RECORDED, tables=()), "aa") == []


def test_the_best_evidence_comes_first_and_none_is_trusted_that_is_no_better_than_random():
    (one,) = trusted.worth(RECORDED, "aa")
    best = replace(one, evidence="Occlusion", share=1.0, verdict="better than random")
    worse = replace(one, evidence="Attention", share=0.465)
    assert max(worse, best, key=lambda one: one.rank) == best
    assert trusted.finding([best, worse]) == (
        "Trust occlusion first: of 3 test reviews of this model, occlusion is better than every random order on 100.0%, "
        "attention on 46.5%."
    )
    assert trusted.finding([worse]).startswith("Trust none of this evidence: ")
    assert trusted.frame([best])["gain in deletion"][0].startswith("0.250 (-0.")


@pytest.fixture
def page(first_page):
    first_page.query_params["evidence_trusted_imdb-encoder"] = "true"
    return first_page.run().switch_page("../pages/evidence.py").run()


def test_the_page_shows_what_is_recorded_of_the_model_on_view(page, model_root, monkeypatch):
    recorded_of = replace(RECORDED, tables=(models([str(model_root / "imdb-encoder")]), *RECORDED.tables[1:]))
    monkeypatch.setattr(recorded, "found", lambda: ([replace(RECORDED, tables=()), recorded_of], []))
    explained(page, "good", "imdb-encoder", "imdb-bilstm")
    assert [one.value for one in page.markdown if "test reviews of this model" in one.value] == [
        trusted.markdown.literal(
            trusted.finding(trusted.worth(recorded_of, models([str(model_root / "imdb-encoder")]).rows[0][1]))
        )
    ]
    assert any(list(table.value) == list(trusted.frame([])) for table in page.dataframe)
    (command,) = [code.value for code in page.code]
    assert command == f"python -m benchmarks.faithfulness --models {model_root / 'imdb-bilstm'}"
