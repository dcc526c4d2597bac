import datasets
import httpx
import pytest
from datasets.exceptions import DatasetNotFoundError
from huggingface_hub.errors import OfflineModeIsEnabled

from core.data.sources import imdb_official

TEXTS, LABELS = ["dull", "grand", "fine"], [0, 1, 1]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)


@pytest.fixture
def asked(monkeypatch):
    """What the hub is asked, in order; it answers at once."""
    calls = []
    monkeypatch.setattr(imdb_official.HfApi, "dataset_info", lambda self, name, timeout: calls.append((name, timeout)))

    def load_dataset(name, split):
        calls.append((name, split))
        return datasets.Dataset.from_dict({"text": TEXTS, "label": LABELS})

    monkeypatch.setattr(imdb_official, "load_dataset", load_dataset)
    return calls


def test_the_hub_is_asked_briefly_before_anything_is_loaded(asked):
    reviews = imdb_official.load()
    assert (reviews.texts, reviews.labels, reviews.label_names) == (TEXTS, LABELS, ("negative", "positive"))
    assert asked == [("stanfordnlp/imdb", 3), ("stanfordnlp/imdb", "train")]


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("no route"),
        httpx.ReadTimeout("hangs"),
        OfflineModeIsEnabled("HF_HUB_OFFLINE"),
        DatasetNotFoundError("gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_without_the_hub_one_sentence_names_the_offline_source(monkeypatch, asked, error):
    def refuse(self, name, timeout):
        raise error

    monkeypatch.setattr(imdb_official.HfApi, "dataset_info", refuse)
    with pytest.raises(ValueError, match=f"{type(error).__name__}.*use 'imdb'"):
        imdb_official.load()
    assert asked == [], "nothing may be loaded where the hub did not answer"


def test_a_download_that_breaks_off_is_the_same_sentence(monkeypatch, asked):
    def load_dataset(name, split):
        raise ConnectionError("broken off")

    monkeypatch.setattr(imdb_official, "load_dataset", load_dataset)
    with pytest.raises(ValueError, match="use 'imdb'"):
        imdb_official.load()


def test_what_was_downloaded_before_needs_no_hub(tmp_path, asked):
    folder = tmp_path / "stanfordnlp___imdb" / "plain_text" / "0.0.0" / "e6281661ce1c48d9"
    folder.mkdir(parents=True)
    rows = datasets.Dataset.from_dict({"text": TEXTS, "label": LABELS})
    with datasets.arrow_writer.ArrowWriter(features=rows.features, path=str(folder / "imdb-train.arrow")) as writer:
        for row in rows:
            writer.write(row)
        writer.finalize()
    splits = datasets.SplitDict({"train": datasets.SplitInfo(name="train", num_examples=3, dataset_name="imdb")})
    info = datasets.DatasetInfo(
        features=rows.features, splits=splits, dataset_name="imdb", config_name="plain_text", version="0.0.0"
    )
    info.write_to_directory(str(folder))
    reviews = imdb_official.load()
    assert (reviews.texts, reviews.labels) == (TEXTS, LABELS)
    assert asked == []
