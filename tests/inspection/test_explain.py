"""The verb `explain`: what machines read, the file to take away, and sentences for what was chosen wrongly."""

import hashlib
import json
from dataclasses import replace

import pytest

from core.__main__ import main
from core.catalog import EVIDENCE
from core.inspection.evidence import evidence
from core.inspection.report import weights_hash
from core.words import word_spans
from tests import small_models
from tests.inspection.conftest import PROBES

TEXT = "The film is good, not unwatchable"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return small_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr("core.inspection.gradients.MOST_STEPS", 32)


def explained(capsys, *argv: object) -> dict:
    assert main(["explain", *map(str, argv), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys, *argv: object) -> str:
    assert main(["explain", *map(str, argv)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


@pytest.mark.parametrize("name", ["imdb-encoder", "imdb-bilstm", "cls"])
def test_json_has_the_figures_of_the_evidence(capsys, folders, models, name):
    found, expected = explained(capsys, "--model", folders / name, "--text", TEXT), evidence(models[name], TEXT)
    assert found["label"] == expected.prediction.label
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert [word["text"] for word in found["words"]] == ["The", "film", "is", "good", ",", "not", "unwatchable"]
    for word, own in zip(found["words"], expected.words, strict=True):
        assert TEXT[slice(*word["span"])] == word["text"] and word["read"] == own.read
    for method in EVIDENCE:
        values = [word[method] for word in found["words"]]
        if method in expected.found:
            assert values == pytest.approx(expected.found[method].values.tolist(), abs=1e-5)
            worth = found["faithfulness"][method]
            assert 0 <= worth["random_low"] <= worth["random_high"] <= 1
            assert 0 <= worth["deletion"] <= 1 and 0 <= worth["insertion"] <= 1
        else:
            assert name == "imdb-bilstm" or not EVIDENCE[method].of_networks
            assert values == [None] * 7 and method not in found["faithfulness"]
    assert found["completeness_gap"] == pytest.approx(expected.completeness_gap, abs=1e-4)


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_is_explained_word_by_word_or_refused(capsys, folders, probe):
    text = PROBES[probe]
    command = ("--model", folders / "one-head", f"--text={text}")
    if not text.strip():
        assert "expected a review of at least one word" in refusal(capsys, *command, "--json")
        return
    found = explained(capsys, *command)
    spans = [tuple(word["span"]) for word in found["words"]]
    assert spans == sorted(set(spans)) and all(text[slice(*word["span"])] == word["text"] for word in found["words"])
    assert all(any(first <= start and end <= last for first, last in spans) for start, end in word_spans(text))
    assert found["tokens_left_out"] == 0 or not all(word["read"] for word in found["words"])


def test_a_person_reads_what_it_rests_on_and_what_each_method_is_worth(capsys, folders):
    assert main(["explain", "--model", str(folders / "imdb-encoder"), "--text", TEXT]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "; rests " in shown[0] and shown[1].startswith("The methods ")
    for method in (method for method in EVIDENCE.values() if method.of_networks):
        assert any(line.startswith(f"{method.title}: ") and "random (deletion 0." in line for line in shown)


def test_a_report_is_one_file_with_its_stamp(capsys, folders, tmp_path):
    text = "good <script>alert(1)</script> film 🤗 " + "not bad " * 20
    path = tmp_path / "why.html"
    explained(capsys, "--model", folders / "imdb-encoder", f"--text={text}", "--report", path, "--remove")
    page = path.read_text(encoding="utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)&lt;/script&gt; film 🤗" in page
    assert "<script src" not in page and page.count("Plotly.newPlot") >= 4
    stamped = ("Model imdb-encoder, weights of SHA-256 ", "Read 24 of ", "backend &#x27;eager&#x27;", "Colours go from -")
    for said in (*stamped, "layers and heads count from 1", "drawn with seed 0", "python -m core explain", "--remove"):
        assert said in page, said
    assert page.count("<td>no</td>") > 10


def test_a_report_is_written_over_nothing_and_into_a_folder_that_is_there(capsys, folders, tmp_path):
    path = tmp_path / "why.html"
    path.write_text("mine")
    command = ("--model", folders / "one-head", "--text", TEXT, "--report")
    assert "why.html: there is a file already; name another with --report" in refusal(capsys, *command, path)
    assert path.read_text() == "mine"
    assert "there is no folder" in refusal(capsys, *command, tmp_path / "none" / "why.html")


def test_what_is_no_model_is_refused(capsys, tmp_path):
    assert "there is no such folder" in refusal(capsys, "--model", tmp_path / "none", "--text", TEXT)


def test_the_hash_of_weights_is_that_of_the_file_or_of_all_of_them(models, tmp_path):
    def of(**files: bytes) -> str:
        for name, content in files.items():
            (tmp_path / f"{name}.safetensors").write_bytes(content)
        return weights_hash(replace(models["one-head"], folder=tmp_path))

    assert of(model=b"one") == hashlib.sha256(b"one").hexdigest()[:16]
    (tmp_path / "model.safetensors").unlink()
    assert of(**{"model-2": b"b", "model-1": b"a"}) == hashlib.sha256(b"ab").hexdigest()[:16]
