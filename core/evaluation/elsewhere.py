"""A model on a data set of the catalogue that it was not trained on."""

import numpy as np

from core.artifact import Opened
from core.catalog import SOURCES
from core.data.corpus import encode_corpus
from core.data.labels import known_classes
from core.data.reviews import Reviews
from core.data.splits import text_hash
from core.evaluation.predictions import Predictions
from core.evaluation.table import table_logits
from core.runs import read_model
from core.words import count_words


def elsewhere(model: Opened, source: str) -> Predictions:
    """What a model answers for each different review of a data set.

    ValueError if it was trained on a part of it, if it knows other classes, and for a data set that is out of reach.
    """
    config = read_model(model.folder).config
    if config is not None and config.reviews.data == source:
        raise ValueError(f"{model.name} was trained on a part of {source}; the rest of it is its test side already")
    reviews = SOURCES[source].resolve()()
    classes = known_classes(reviews.label_names, model.label_names)
    if None in classes:
        raise ValueError(
            f"{model.name} tells {', '.join(model.label_names)} apart, and the reviews of {source} are "
            f"{' or '.join(reviews.label_names)}; choose a model of those classes"
        )
    return _answered(model, reviews, np.array(classes, dtype=np.int64)[reviews.labels])


def _answered(model: Opened, reviews: Reviews, labels: np.ndarray) -> Predictions:
    hashes, first = np.unique([text_hash(text) for text in reviews.texts], return_index=True)
    texts = [reviews.texts[i] for i in first]
    tokens = encode_corpus(model.tokenizer, texts).lengths
    return Predictions(
        hashes=hashes,
        labels=labels[first],
        logits=table_logits(model, texts, windows=False, progress=lambda done, total: None),
        words=np.array([count_words(text) for text in texts]),
        tokens=tokens,
        tokens_read=np.minimum(tokens, model.cut.room),
    )
