"""Model folders: what is found, what is opened, and one sentence for each way to be damaged."""

import copy
import json
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from core import artifact
from core.artifact import load_network, model_folders, open_model, read_predictions, read_run
from core.card import card
from core.config import RunConfig
from core.data import tokenizer as tokenizers
from core.networks.auto import build
from core.training.run import train
from tests import small_models, small_runs


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    return small_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture
def folder(models, tmp_path) -> Path:
    """A model of its own, to be damaged."""
    return Path(shutil.copytree(models / "imdb-encoder", tmp_path / "mine"))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """Whatever asks the network is a fault: a missing folder is no name on the hub."""
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was asked"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("the network was asked"))


def sentence(act, folder: Path) -> str:
    """What `act` says of a folder that it refuses: one line that names the folder."""
    with pytest.raises(ValueError) as caught:
        act(folder)
    text = str(caught.value)
    assert str(folder) in text and "\n" not in text and len(text) < 400 + 3 * len(str(folder))
    return text


# What is opened


@pytest.mark.parametrize("name", small_models.MODELS)
def test_a_model_is_opened_ready_to_read(models, name):
    model = open_model(models / name)
    assert (model.name, model.folder, model.run) == (name, models / name, {})
    assert model.architecture == replace(small_models.MODELS[name], vocab_size=model.tokenizer.get_vocab_size())
    assert model.kind == small_models.MODELS[name].kind and model.label_names == ("negative", "positive")
    assert not any(module.training for module in model.network.modules())
    assert all(p.dtype == torch.float32 and not p.requires_grad for p in model.network.parameters())


def test_a_model_of_a_run_is_called_by_the_run(folder):
    inside = folder.parent / "2026-a" / "model"
    shutil.copytree(folder, inside)
    assert open_model(inside).name == "2026-a"


@pytest.mark.parametrize(("weights", "dtype"), [("float32", torch.float32), ("float16", torch.float16)])
def test_writing_leaves_the_network_as_it_is(tmp_path, weights, dtype):
    config = RunConfig(model=small_models.MODELS["cls"])
    config = replace(config, training=replace(config.training, weights=weights))
    network = build(config.model, ("no", "yes")).train()
    before = copy.deepcopy(network.state_dict())
    artifact.write_network(tmp_path / "new", network, tokenizers.train(small_models.TEXTS, 60), config)
    assert network.training and all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert {tensor.dtype for tensor in load_file(tmp_path / "new" / "model.safetensors").values()} == {dtype}
    opened = load_network(tmp_path / "new").state_dict()
    assert all(torch.equal(opened[name], before[name].to(dtype).float()) for name in before)


# What is missing


@pytest.mark.parametrize("name", ["nowhere", "bert-base-uncased", "distilbert/distilbert-base-uncased", "mine/config.json"])
@pytest.mark.parametrize("act", [open_model, load_network, read_run, read_predictions])
def test_a_folder_that_is_none_is_no_name_on_the_hub(act, folder, name, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert "there is no such folder; expected one that `python -m core train` wrote" in sentence(act, Path(name))


@pytest.mark.parametrize(
    ("act", "needs"),
    [
        (open_model, artifact.FILES),
        (load_network, ("config.json", "model.safetensors")),
        (read_run, ("run.json",)),
        (read_predictions, ("predictions.parquet",)),
    ],
)
def test_each_missing_file_is_named(act, needs, folder):
    for name in needs:
        shutil.move(folder / name, folder / "aside")
        assert f": {name} missing; expected" in sentence(act, folder)
        (folder / name).mkdir()  # nor is a folder of that name the file
        assert f": {name} missing; expected" in sentence(act, folder)
        (folder / name).rmdir()
        shutil.move(folder / "aside", folder / name)
    for name in needs:
        (folder / name).unlink()
    assert f": {', '.join(needs)} missing" in sentence(act, folder)


# What is damaged


def change_config(folder: Path, **values) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b"3", b"{}", b"\xff\xfe\0", b'{"model_type": null}', b'{"model_type": 3}']
)
def test_a_damaged_config_is_refused(folder, content):
    (folder / "config.json").write_bytes(content)
    assert "config.json is " in sentence(open_model, folder)


@pytest.mark.parametrize("values", [
    dict(model_type="bert"), dict(model_type="t5"), dict(model_type="gpt2"), dict(model_type="attention-lab-bilstm"),
    dict(model_type="no-such-thing"), dict(model_type="../../etc"),
    dict(d_model="wide"), dict(d_model=None), dict(n_heads=5), dict(n_layers=-1), dict(pooling="sum"), dict(kind="bilstm"),
    dict(d_model=24), dict(n_layers=1), dict(n_layers=3), dict(vocab_size=30), dict(positional="learned"), dict(d_ff=9),
    dict(id2label={"0": "a", "1": "b", "2": "c"}), dict(id2label=[]), dict(id2label={"0": "a"}),
], ids=str)  # fmt: skip
def test_a_config_of_something_else_is_refused(folder, values):
    change_config(folder, **values)
    sentence(open_model, folder)


def test_remote_code_is_never_run(folder):
    ran = folder / "ran"
    (folder / "code.py").write_text(f"open({str(ran)!r}, 'w')\n")
    change_config(folder, auto_map={"AutoConfig": "code.C", "AutoModelForSequenceClassification": "code.M"})
    open_model(folder)  # by our own code
    assert not ran.exists()


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 100, 0.5, -1])
def test_truncated_weights_are_refused(folder, kept):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept) if isinstance(kept, float) else kept])
    assert "the model cannot be opened (" in sentence(open_model, folder)


@pytest.mark.parametrize("content", [b"\xff" * 1000, b"PK\x03\x04" + bytes(500), b"\x80\x02}q\0." * 50])
def test_weights_of_another_format_are_refused(folder, content):
    (folder / "model.safetensors").write_bytes(content)
    assert "the model cannot be opened (" in sentence(open_model, folder)


@pytest.mark.parametrize("damage", ["left out", "too many", "other shape", "all gone"])
def test_weights_that_do_not_fit_are_refused(folder, damage):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = "network.classifier.weight"
    if damage == "left out":
        del tensors[name]
    elif damage == "too many":
        tensors["network.classifier.more"] = torch.zeros(2)
    elif damage == "other shape":
        tensors[name] = torch.zeros(2, 5)
    save_file({} if damage == "all gone" else tensors, path, metadata={"format": "pt"})
    assert "model.safetensors does not hold the weights that config.json describes" in sentence(open_model, folder)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe{}", b"nonsense", b"[]", b"3", b"null"])
def test_a_damaged_record_is_refused(folder, content):
    (folder / "run.json").write_bytes(content)
    for act in (open_model, read_run):
        assert "run.json is damaged (" in sentence(act, folder)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"text,label\n", "half"])
def test_damaged_predictions_are_refused(folder, damage):
    path = folder / "predictions.parquet"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if damage == "half" else damage)
    assert "predictions.parquet is damaged (" in sentence(read_predictions, folder)
    open_model(folder)  # which reads without them


@pytest.mark.parametrize("name", artifact.COLUMNS)
def test_predictions_without_one_of_their_columns_are_damaged(folder, name):
    frame = read_predictions(folder)
    frame.drop(columns=name).to_parquet(folder / "predictions.parquet", index=False)
    assert f"predictions.parquet is damaged (no {name}); train" in sentence(read_predictions, folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\0"])
def test_a_damaged_tokeniser_is_refused(folder, content):
    (folder / "tokenizer.json").write_bytes(content)
    assert "tokenizer.json" in sentence(open_model, folder)


@pytest.mark.parametrize("vocab_size", [40, 300])
def test_the_tokeniser_of_another_model_is_refused(folder, vocab_size):
    texts = [f"{chr(97 + i % 26) * (1 + i // 26)} film" for i in range(300)] * 2
    other = tokenizers.train(texts, vocab_size)
    tokenizers.save(other, folder, max_len=24, add_cls=False)
    expected = f"tokenizer.json has {other.get_vocab_size()} entries and the network knows "
    assert expected in sentence(open_model, folder)


# Which there are


def test_models_are_folders_with_a_record(models, tmp_path):
    shutil.copytree(models, tmp_path / "models")
    (tmp_path / "models" / "cls" / "run.json").unlink()
    (tmp_path / "models" / "empty").mkdir()
    (tmp_path / "models" / "README.md").touch()
    expected = sorted({*small_models.MODELS} - {"cls"})
    assert list(model_folders(tmp_path / "models")) == expected
    assert model_folders(tmp_path / "models")["one-head"] == tmp_path / "models" / "one-head"


def test_the_environment_names_the_root_of_models(models, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(models))
    assert list(model_folders()) == sorted(small_models.MODELS)
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path / "nowhere"))
    assert model_folders() == {}
    monkeypatch.delenv("ATTENTION_LAB_MODELS")
    assert set(model_folders()) == {path.parent.name for path in (artifact.ROOT / "models").glob("*/run.json")}


def test_what_runs_made_is_listed_too_and_a_shipped_name_counts_first(models, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(models))
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    for id in ("a-run", "cls"):
        shutil.copytree(folder, tmp_path / "runs" / id / "model")
    shutil.copytree(folder, tmp_path / "runs" / "half" / "model.partial")
    found = model_folders()
    assert list(found) == sorted([*small_models.MODELS, "a-run"])
    assert found["a-run"] == tmp_path / "runs" / "a-run" / "model" and found["cls"] == models / "cls"
    assert "a-run" not in model_folders(models)


# The card


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict:
    """run.json of a run on a file whose name is markup."""
    root = tmp_path_factory.mktemp("run")
    table = small_runs.write_table(root / "<b>my_data*|`$x$`.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_CACHE", str(root / "cache"))
        train(small_runs.config(table, epochs=1), root, lambda event: None, ["train", "--out", "x"])
    return read_run(root / "model")


def test_the_card_escapes_what_people_named(made):
    run = made | {"label_names": ["[bad](http://x)", "# good\n\n# really <script>"]}
    text = card(run)
    assert r"\<b\>my\_data\*\|\`\$x\$\`\.csv" in text and "<b>" not in text and "my_data" not in text
    assert r"\[bad\]\(http://x\) or \# good \# really \<script\>" in text.splitlines()[0]


def test_the_card_says_what_the_record_says(made):
    text = card(made)
    test = made["metrics"]["test"]
    row = f"| test | {test['n']} | {test['accuracy']:.1%} | {test['low']:.1%} to {test['high']:.1%} | {test['f1']:.3f} |"
    assert row in text.splitlines()
    assert f"{made['n_parameters']:,} parameters: vocab_size {made['config']['model']['vocab_size']}, " in text
    assert "    python -m core train --out x" in text.splitlines()
    assert f"{made['data']['n']['train']} reviews of " in text and f"\n1 of 1 were chosen, and {test['n']} for test" in text
    assert made["data"]["fingerprint"]["train"] in text and f"torch {torch.__version__}" in text


def test_a_bucket_without_reviews_has_no_figure(made):
    names = {bucket["name"]: bucket["n"] for bucket in made["metrics"]["test"]["buckets"]}
    assert names["1-32"] > 0 == names["33-96"] == names["over 224"]
    lines = card(made).splitlines()
    assert "| 33-96 | 0 | no data | |" in lines and "| over 224 | 0 | no data | |" in lines
    assert not any(line.startswith("| 1-32 | 0") for line in lines)


def test_a_table_keeps_its_columns(made):
    """Whatever the names, every row of a table has as many cells as its head."""
    rows = [line for line in card(made).splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in rows} == {5, 6}


@pytest.mark.parametrize("names", [["good", "good"], [None, "good"], [0, 1]])
def test_classes_without_names_of_their_own_are_refused(tmp_path, names):
    folder = small_models.write(tmp_path) / "one-head"
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"id2label": dict(enumerate(names))}))
    with pytest.raises(ValueError, match="expected a different text for each|cannot be opened"):
        artifact.load_network(folder)


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    path = small_models.write(tmp_path) / "one-head" / "model.safetensors"
    weights = load_file(path)
    weights[next(iter(weights))].fill_(float("nan"))
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="no finite numbers"):
        artifact.load_network(path.parent)
