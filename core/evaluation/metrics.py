"""How well logits agree with labels."""

import numpy as np
from jaxtyping import Float, Int

from core.evaluation.lengths import buckets
from core.records import Metrics
from core.statistics import wilson


def metrics(logits: Float[np.ndarray, "n C"], labels: Int[np.ndarray, "n"], words: Int[np.ndarray, "n"]) -> Metrics:
    """Accuracy with its interval, F1, and accuracy by length in words. ValueError where there is no review."""
    from sklearn.metrics import f1_score  # a second to import

    predicted = logits.argmax(-1)
    correct = predicted == labels
    low, high = wilson(int(correct.sum()), len(correct))
    classes = range(logits.shape[1])
    average = {"average": "binary"} if len(classes) == 2 else {"average": "macro", "labels": list(classes)}
    return Metrics(
        n=len(correct),
        accuracy=float(correct.mean()),
        low=low,
        high=high,
        f1=float(f1_score(labels, predicted, zero_division=0.0, **average)),
        buckets=tuple(buckets(words, correct)),
    )
