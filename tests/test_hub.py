"""Classifiers of the hub, of which nothing is asked here: what it answers is made up."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

from core import hub
from core.artifact import open_reader
from tests import foreign_models
from tests.foreign_models import rewrite


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return foreign_models.write(tmp_path_factory.mktemp("checkpoints")) / "bert"


@pytest.fixture
def folder(bert, tmp_path):
    """A copy, to be spoilt."""
    return shutil.copytree(bert, tmp_path / "bert")


@pytest.fixture
def asked(monkeypatch, folder):
    """What is asked of a hub that has a copy of BERT's folder; files of other names stay there."""
    calls = []

    def model_info(self, name, **options):
        assert options["timeout"] <= 5 and options["token"] is False
        files = [SimpleNamespace(rfilename=path.name, size=path.stat().st_size) for path in folder.iterdir()]
        return SimpleNamespace(siblings=files)

    def snapshot_download(name, **options):
        calls.append((name, options.get("allow_patterns")))
        return str(folder)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return calls


def test_a_folder_is_a_folder_whatever_it_is_called(asked):
    assert hub.local_folder(Path("owner/name")) == Path("owner/name")
    with pytest.raises(ValueError, match="owner/name: there is no such folder; .* or hub:OWNER/NAME"):
        open_reader(Path("owner/name"))
    assert asked == []


def test_a_classifier_of_the_hub_opens_once_its_settings_are_known(asked):
    opened = open_reader(Path("hub:owner/name"))
    assert (opened.name, opened.kind) == ("name", "bert")
    assert [name for name, _ in asked] == ["owner/name"] * 2
    settings, everything = (set(patterns) for _, patterns in asked)
    assert settings == {"config.json", "tokenizer.json"} < everything
    assert all(name.endswith((".safetensors", ".json")) for name in everything - settings)


def test_what_was_downloaded_before_is_known_without_the_hub(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    names = ("hub:owner/name", "hub:owner/other", "hub:<b>/x", "hub:", "hub:../..")
    assert not any(map(hub.is_downloaded, names))
    stored = tmp_path / "models--owner--name"
    (stored / "snapshots" / "a1").mkdir(parents=True)
    (stored / "snapshots" / "a1" / "config.json").write_text("{}")
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("a1")
    assert [name for name in names if hub.is_downloaded(name)] == ["hub:owner/name"]


@pytest.mark.parametrize("changes, reason", [
    (dict(model_type="gpt2"), "is of a 'gpt2'"), (dict(architectures=["BertForTokenClassification"]), "TokenClassification"),
    (dict(auto_map={"AutoConfig": "evil.Config"}), "asks for code of its own"),
], ids=str)  # fmt: skip
def test_what_cannot_be_opened_is_refused_before_its_weights_come(asked, folder, changes, reason):
    rewrite(folder, **changes)
    with pytest.raises(ValueError, match=reason):
        hub.local_folder(Path("hub:owner/name"))
    assert len(asked) == 1


def test_other_weights_than_safetensors_are_not_downloaded(asked, folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="no model.safetensors; other weights can run code"):
        hub.local_folder(Path("hub:owner/name"))
    assert asked == []


def test_weights_that_are_too_large_are_not_downloaded(asked, monkeypatch):
    monkeypatch.setattr(hub, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="its weights take .* GiB, expected at most"):
        hub.local_folder(Path("hub:owner/name"))
    assert asked == []


def test_without_a_network_what_was_downloaded_before_opens(asked, monkeypatch):
    def offline(self, name, **options):
        raise OfflineModeIsEnabled("offline")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", offline)
    assert open_reader(Path("hub:owner/name")).kind == "bert"


def test_without_a_network_nothing_else_does_and_that_is_a_sentence(asked, monkeypatch):
    def offline(*given, **options):
        raise LocalEntryNotFoundError("offline") if options.get("local_files_only") else OfflineModeIsEnabled("offline")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", offline)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(ValueError, match="hub:owner/name: the Hugging Face hub does not answer .* name a folder, or try again"):
        open_reader(Path("hub:owner/name"))


@pytest.mark.parametrize("name", ["hub:", "hub:a/b/c", "hub:<b>/x", "hub:../x", "hub:a b/c"])
def test_what_is_no_name_is_refused_without_asking(name):
    with pytest.raises(ValueError, match="expected a name such as hub:OWNER/NAME"):
        open_reader(Path(name))
