"""A linear model of the runs of tokens that tell classes apart: no steps, one fit for each strength of regularisation."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy import sparse

from core.config import LinearArchitecture
from core.data.batches import collate, token_budget_batches
from core.events import EpochFinished, Event
from core.networks.auto import LinearForSequenceClassification, build
from core.networks.linear import Linear, runs_of
from core.training.loop import Examples, Fitted, Rates

TOKENS_AT_ONCE = 200_000
MOST_ITERATIONS = 1_000


def known_runs(reviews: Sequence[Int[np.ndarray, "_"]], architecture: LinearArchitecture) -> Int[np.ndarray, "J"]:
    """The runs that enough of the reviews have, most frequent first where there are too many, in ascending order.

    ValueError where there is none.
    """
    a = architecture
    each = [runs_of(torch.from_numpy(ids).long()[None], None, a.longest_run, a.vocab_size).number for ids in reviews]
    runs, n_reviews = np.unique(np.concatenate([np.unique(numbers.numpy()) for numbers in each]), return_counts=True)
    kept = np.argsort(-n_reviews, kind="stable")[: a.n_features]
    kept = kept[n_reviews[kept] >= a.min_reviews]
    if not len(kept):
        raise ValueError(f"min_reviews: got {a.min_reviews}, which no run of tokens reaches here; choose a smaller number")
    return np.sort(runs[kept])


def untrained(
    architecture: LinearArchitecture, label_names: tuple[str, ...], train: Examples
) -> LinearForSequenceClassification:
    """A model that knows the runs of these reviews, and with TF-IDF how rare each is, and has learned nothing yet."""
    runs = known_runs(train.ids, architecture)
    network = build(replace(architecture, n_features=len(runs)), label_names)
    assert isinstance(network, LinearForSequenceClassification)
    network.network.runs.copy_(torch.from_numpy(runs))
    if architecture.features == "tfidf":
        n_reviews = np.bincount(matrix(network.network, train.ids).indices, minlength=len(runs))
        network.network.scale.copy_(torch.from_numpy(1 + np.log((1 + len(train)) / (1 + n_reviews))))  # as scikit-learn has it
    return network


@torch.no_grad()
def matrix(network: Linear, reviews: Sequence[Int[np.ndarray, "_"]]) -> sparse.csr_array:
    """The values of the runs that the network knows: a row for each review, a column for each run."""
    rows, columns, values = [], [], []
    for places in token_budget_batches(np.array([len(ids) for ids in reviews]), TOKENS_AT_ONCE):
        batch = collate([reviews[i] for i in places])
        found = network.features(network.known(batch.input_ids, batch.token_mask), len(places))
        rows.append(places[found.review.numpy()].astype(np.int32))  # liblinear takes no others
        columns.append(found.index.numpy().astype(np.int32))
        values.append(found.value.numpy())
    cells = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(cells, shape=(len(reviews), len(network.runs)))


def fit(
    network: LinearForSequenceClassification,
    train: Examples,
    validation: Examples,
    *,
    seed: int,
    emit: Callable[[Event], None],
    stopped: Callable[[], bool],
) -> Fitted:
    """One fit for each of `c_values`; the network is left with the one most accurate on validation.

    Each is an epoch to those who listen. `stopped` is asked before each; what is there by then stays.
    """
    linear, rates, epochs, best = network.network, Rates(), [], 0
    begun = time.perf_counter()
    x, held_out = matrix(linear, train.ids), matrix(linear, validation.ids)
    for number, c in enumerate(linear.architecture.c_values, 1):
        if stopped():
            break
        started = time.perf_counter()
        weight, bias = solved(linear.architecture, x, train.labels, c, seed)
        rates.seconds += time.perf_counter() - started
        rates.reviews += len(train)
        rates.tokens += sum(map(len, train.ids))
        logits = held_out @ weight + bias
        epochs.append(EpochFinished(
            epoch=number, step=number, train_loss=_loss(x @ weight + bias, train.labels),
            val_loss=_loss(logits, validation.labels), val_accuracy=float((logits.argmax(1) == validation.labels).mean()),
            elapsed_s=time.perf_counter() - begun,
        ))  # fmt: skip
        emit(epochs[-1])
        if number == 1 or epochs[-1].val_accuracy > epochs[best - 1].val_accuracy:
            best = number
            linear.weight.data, linear.bias.data = (torch.from_numpy(a).float() for a in (weight, bias))
    return Fitted(rates=rates, epochs=epochs, best_epoch=best, stopped=len(epochs) < len(linear.architecture.c_values))


def _loss(logits: Float[np.ndarray, "n C"], labels: Int[np.ndarray, "n"]) -> float:
    """Mean cross-entropy, nats per review."""
    return float((np.logaddexp.reduce(logits, axis=1) - logits[np.arange(len(labels)), labels]).mean())


def solved(
    architecture: LinearArchitecture, x: sparse.csr_array, labels: Int[np.ndarray, "n"], c: float, seed: int
) -> tuple[Float[np.ndarray, "J C"], Float[np.ndarray, "C"]]:
    """Weights and biases: of each class against the others, or where there are two of the second against the first."""
    n_classes = architecture.n_classes
    ratios = log_ratio if architecture.features == "naive-bayes" else lambda x, _: np.ones(x.shape[1])
    classes = [1] if n_classes == 2 else range(n_classes)
    columns = [_against_the_others(x, labels == k, ratios(x, labels == k), c, seed) for k in classes]
    weight, bias = np.stack([weight for weight, _ in columns], 1), np.array([bias for _, bias in columns])
    return (weight * [-0.5, 0.5], bias * [-0.5, 0.5]) if n_classes == 2 else (weight, bias)


def log_ratio(x: sparse.csr_array, positive: Bool[np.ndarray, "n"]) -> Float[np.ndarray, "J"]:
    """How much larger a share of all runs each is in the positive reviews than in the others, in logarithms.

    Each is counted once more than it is there: r of Wang and Manning 2012, with alpha = 1.
    """
    inside, outside = (1 + x[side].sum(0) for side in (positive, ~positive))
    return np.log(inside / inside.sum()) - np.log(outside / outside.sum())


def _against_the_others(
    x: sparse.csr_array, positive: Bool[np.ndarray, "n"], ratio: Float[np.ndarray, "J"], c: float, seed: int
) -> tuple[Float[np.ndarray, "J"], float]:
    """Logistic regression on the values times the ratio, written as weights of the values; its scores are log-odds."""
    from sklearn.linear_model import LogisticRegression  # a second to import

    if not positive.any():  # a class that only the other sides have
        return np.zeros(x.shape[1]), -float(np.log(len(positive)))
    solver = LogisticRegression(C=c, solver="liblinear", dual=True, max_iter=MOST_ITERATIONS, random_state=seed)
    solver.fit(x * ratio, positive)
    return solver.coef_[0] * ratio, float(solver.intercept_[0])
