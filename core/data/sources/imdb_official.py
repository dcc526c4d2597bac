"""IMDB (Maas et al. 2011) as the Hugging Face hub has it."""

from datasets import Dataset, load_dataset
from datasets.exceptions import DatasetsError
from datasets.packaged_modules.cache.cache import Cache
from huggingface_hub import HfApi
from huggingface_hub.errors import HTTPError  # pyright: ignore[reportPrivateImportUsage]  # of the client the hub uses

from core.data.reviews import Reviews

NAME = "stanfordnlp/imdb"


def load() -> Reviews:
    """The 25,000 training reviews: those downloaded before, else from the hub.

    A hub that does not answer within seconds is a ValueError.
    """
    try:
        rows = Cache(repo_id=NAME, dataset_name="imdb", version="auto", hash="auto").as_dataset(split="train")
    except ValueError:  # never downloaded
        rows = _download()
    return Reviews(
        name="imdb-official",
        texts=rows.data["text"].to_pylist(),
        labels=rows.data["label"].to_pylist(),
        label_names=("negative", "positive"),
    )


def _download() -> Dataset:
    try:
        HfApi().dataset_info(NAME, timeout=3)  # load_dataset alone would try again for 23 s, or for ever
        return load_dataset(NAME, split="train")
    except (HTTPError, OSError, DatasetsError) as error:
        raise ValueError(
            f"data: could not get 'imdb-official' from the Hugging Face hub ({type(error).__name__}); "
            f"use 'imdb', the same reviews without the network"
        ) from error
