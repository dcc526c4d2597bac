"""A linear model on runs of tokens, against the same written out in Python, and against scikit-learn."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from core.config import LinearArchitecture
from core.data.batches import collate
from core.networks.auto import build
from core.networks.linear import runs_of
from core.training.linear import known_runs, matrix, untrained
from core.training.loop import Examples

ARCHITECTURE = LinearArchitecture(vocab_size=12, min_reviews=1, longest_run=3)
LABELS = ("bad", "mixed", "good")


def reviews(n: int = 7, longest: int = 9) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    return [draw.integers(4, 12, length).astype(np.int32) for length in draw.integers(1, longest + 1, n)]


def of(architecture: LinearArchitecture, ids: list[np.ndarray]):
    """A model that knows all runs of these reviews, with weights drawn."""
    network = untrained(architecture, LABELS, Examples(ids, np.zeros(len(ids), dtype=np.int64)))
    draw = torch.Generator().manual_seed(5)
    for parameter in network.parameters():
        parameter.data = torch.randn(parameter.shape, generator=draw)
    return network.eval().requires_grad_(False)


def by_hand(ids: np.ndarray, longest: int) -> Counter:
    """How often each run of tokens is there."""
    tokens = ids.tolist()
    return Counter(tuple(tokens[start : start + n]) for n in range(1, longest + 1) for start in range(len(tokens) - n + 1))


def number(run: tuple[int, ...], vocab_size: int) -> int:
    digits = [token + 1 for token in run]
    return sum(digit * (vocab_size + 1) ** power for power, digit in enumerate(reversed(digits)))


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_runs_are_those_of_each_review_alone(longest):
    ids = reviews()
    batch = collate(ids)
    found = runs_of(batch.input_ids, batch.token_mask, longest, 12)
    for row, own in enumerate(ids):
        expected = Counter({number(run, 12): n for run, n in by_hand(own, longest).items()})
        assert Counter(found.number[found.review == row].tolist()) == expected
    for review, place, length, run in zip(*map(torch.Tensor.tolist, found), strict=True):
        assert number(tuple(ids[review][place : place + length].tolist()), 12) == run


def test_different_runs_have_different_numbers():
    runs = [(a,) for a in range(6)] + [(a, b) for a in range(6) for b in range(6)]
    runs += [(a, b, c) for a, b in runs[6:] for c in range(6)]
    assert len({number(run, 6) for run in runs}) == len(runs)


@pytest.mark.parametrize("features", ["naive-bayes", "tfidf"])
def test_logits_by_hand(features):
    ids = reviews()
    network = of(replace(ARCHITECTURE, features=features), ids)
    index = {run: i for i, run in enumerate(network.network.runs.tolist())}
    batch = collate(ids)
    logits = network(batch.input_ids, batch.token_mask.long()).logits
    for row, own in enumerate(ids):
        counts = {index[number(run, 12)]: n for run, n in by_hand(own, 3).items()}
        values = {
            i: 1.0 if features == "naive-bayes" else (1 + np.log(n)) * network.network.scale[i].item()
            for i, n in counts.items()
        }
        norm = 1.0 if features == "naive-bayes" else np.sqrt(sum(value**2 for value in values.values()))
        expected = network.network.bias.numpy() + sum(v / norm * network.network.weight[i].numpy() for i, v in values.items())
        np.testing.assert_allclose(logits[row], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("features", ["naive-bayes", "tfidf"])
def test_what_tokens_contribute_and_the_bias_are_the_logits(features):
    ids = reviews()
    network = of(replace(ARCHITECTURE, features=features), ids)
    for own in ids:
        parts = network.network.contributions(torch.from_numpy(own))
        assert parts.shape == (len(own), 3)
        torch.testing.assert_close(parts.sum(0) + network.network.bias, network(torch.from_numpy(own)[None]).logits[0])


def test_a_run_s_part_goes_to_its_own_tokens():
    network = build(replace(ARCHITECTURE, n_features=2, longest_run=2), LABELS).eval().requires_grad_(False)
    network.network.runs.copy_(torch.tensor([number((5,), 12), number((6, 7), 12)]))
    network.network.weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 4.0, 0.0]]))
    parts = network.network.contributions(torch.tensor([6, 7, 5, 9, 5]))
    assert parts.tolist() == [[0, 2, 0], [0, 2, 0], [0.5, 0, 0], [0, 0, 0], [0.5, 0, 0]]


def test_tfidf_is_scikit_learn_s():
    ids = reviews(20)
    network = of(replace(ARCHITECTURE, features="tfidf"), ids)
    vectorizer = TfidfVectorizer(
        analyzer=lambda own: list(by_hand(own, 3).elements()), sublinear_tf=True, norm="l2", smooth_idf=True
    )
    expected = vectorizer.fit_transform(ids)
    place = {number(run, 12): column for run, column in vectorizer.vocabulary_.items()}
    columns = [place[run] for run in network.network.runs.tolist()]
    np.testing.assert_allclose(matrix(network.network, ids).toarray(), expected[:, columns].toarray(), rtol=1e-5)


def test_known_runs_are_in_enough_reviews_and_the_most_frequent():
    ids = [np.array(own, dtype=np.int32) for own in ([4, 5, 4], [4, 6], [5, 4], [7, 7])]
    pairs = replace(ARCHITECTURE, longest_run=2, min_reviews=2)
    assert known_runs(ids, pairs).tolist() == sorted(number(run, 12) for run in [(4,), (5,), (5, 4)])
    assert known_runs(ids, replace(pairs, n_features=1)).tolist() == [number((4,), 12)]
    with pytest.raises(ValueError, match="min_reviews: got 4, which no run of tokens reaches here; choose a smaller number"):
        known_runs(ids, replace(pairs, min_reviews=4))


def test_what_is_not_known_adds_nothing():
    network = of(ARCHITECTURE, [np.array([4, 5], dtype=np.int32)])
    assert network(torch.tensor([[9, 10, 11]])).logits[0].tolist() == pytest.approx(network.network.bias.tolist())


def test_it_attends_to_nothing():
    network = of(ARCHITECTURE, reviews())
    ids = torch.tensor([[4, 5, 6]])
    assert network(ids, output_attentions=True).attentions == () and network(ids).attentions is None
