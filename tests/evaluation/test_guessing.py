"""A model that has learned nothing is told from one that is better than the most frequent class."""

import numpy as np
import pytest

from core.evaluation.guessing import unlearned
from tests.evaluation.conftest import made


def answering(labels: list[int], answers: list[int]):
    return made(labels, np.eye(3)[answers])


def test_one_class_for_every_review_is_nothing_learned():
    assert unlearned(answering([0] * 51 + [1] * 49, [1] * 100)) == (
        "it has learned nothing that shows: it answers every review alike, and one class for all 100 test reviews is right in "
        "51.0%"
    )


@pytest.mark.parametrize(
    ("labels", "right", "learned"),
    [
        ([0, 1] * 50, 59, False),  # Wilson's interval begins at 49.2%
        ([0, 1] * 50, 60, True),  # at 50.2%
        ([0, 1] * 500, 532, True),  # at 50.1%: of more reviews less is enough
        ([0] * 90 + [1] * 10, 90, False),  # as often right as the most frequent class
        ([0] * 90 + [1] * 10, 97, True),  # at 91.5%
        ([0, 1, 2] * 40, 56, True),  # of three classes 46.7%, from 38.0%
    ],
)
def test_better_than_the_most_frequent_class_by_more_than_chance_is_learned(labels, right, learned):
    answers = [label if i < right else (label + 1) % 3 for i, label in enumerate(labels)]
    assert (unlearned(answering(labels, answers)) is None) == learned


def test_a_rare_class_alone_in_the_test_reviews_is_no_proof():
    assert unlearned(answering([0] * 100, [0] * 100)) is not None
