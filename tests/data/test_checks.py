import numpy as np
import pytest

from core.data import tokenizer as tokenizers
from core.data.checks import COUNTED, SideCheck, side_checks, unknown_words
from core.data.reviews import Reviews
from core.data.splits import Splits, text_hash


def sides(**texts: list[str]) -> Splits:
    """Sides of those texts, of which every other one is of the first class."""
    found = {
        name: Reviews(name=name, texts=own, labels=[i % 2 for i in range(len(own))], label_names=("bad", "good"))
        for name, own in texts.items()
    }
    hashes = {name: [text_hash(text) for text in own] for name, own in texts.items()}
    return Splits(**found, hashes=hashes, duplicates_dropped=0)


def test_what_could_be_learnt_by_heart_is_counted():
    found = side_checks(
        sides(
            train=["A fine film, really.", "Dull!", "Two hours"],
            validation=["a fine  FILM, really.", "another"],
            test=["A fine film - really?", "Dull", "new", "Two hours more"],
        )
    )
    assert found["validation"] == SideCheck(n=2, balance={"bad": 0.5, "good": 0.5}, exactly=1, word_for_word=1)
    assert found["test"] == SideCheck(n=4, balance={"bad": 0.5, "good": 0.5}, exactly=0, word_for_word=2)
    assert found["train"].balance == pytest.approx({"bad": 2 / 3, "good": 1 / 3}) and found["train"].exactly == 3


def test_unknown_words_by_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path))
    tokenizer = tokenizers.train(["the film is good and the plot is not bad"] * 3, 60)
    assert unknown_words(tokenizer, ["the film is good"]) == 0.0
    assert unknown_words(tokenizer, ["the 影 is good", "☃"]) == pytest.approx(2 / 5)
    assert unknown_words(tokenizer, [""]) == 0.0


def test_words_are_counted_in_some_reviews_of_many(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path))
    tokenizer = tokenizers.train(["the film is good"] * 3, 60)
    texts = np.where(np.arange(3 * COUNTED) < 1.5 * COUNTED, "the", "影").tolist()
    assert unknown_words(tokenizer, texts) == 0.5
