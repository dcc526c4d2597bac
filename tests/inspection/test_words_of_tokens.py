import numpy as np
import pytest

from core.data.tokenizer import encode
from core.inspection.reading import read
from core.inspection.subject import subject
from core.inspection.words import ADDED, between_words, to_words, words
from core.records import AttentionMap
from core.words import word_spans


def a_map(tokens: list[str], spans: list[tuple[int, int]]) -> AttentionMap:
    n = len(tokens)
    return AttentionMap(tokens=tuple(tokens), spans=tuple(spans), weights=np.full((1, 1, n, n), 1 / n, np.float32))


def test_words_signs_and_added_tokens_by_hand():
    text = "[CLS] don't unwatch, 漢字"
    tokens = ["[CLS]", "don", "'", "t", "un", "##watch", ",", "[UNK]"]
    spans = [(0, 0), (6, 9), (9, 10), (10, 11), (12, 14), (14, 19), (19, 20), (21, 22)]
    everything = [(0, 1), (1, 4), (4, 5), *spans[1:], (22, 23)]
    found, word_of = words(text, everything, a_map(tokens, spans))
    assert [text[slice(*word.span)] for word in found] == ["[", "CLS", "]", "don't", "unwatch", ",", "漢", "字"]
    assert word_of.tolist() == [ADDED, 3, 3, 3, 4, 4, 5, 6]
    assert [word.read for word in found] == [False] * 3 + [True] * 4 + [False]
    assert [word.unknown for word in found] == [False] * 6 + [True, False]


def test_a_token_of_several_words_makes_them_one():
    found, word_of = words("one two", [(0, 7)], a_map(["[UNK]"], [(0, 7)]))
    assert [word.span for word in found] == [(0, 7)] and word_of.tolist() == [0]


def test_to_a_word_goes_the_sum_and_from_a_word_the_mean():
    word_of = np.array([ADDED, 0, 2, 2])
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1], [0.1, 0.5, 0.2, 0.2]])
    np.testing.assert_allclose(to_words(weights[0], word_of, 3), [0.2, 0, 0.7])
    expected = [[0.3, 0, 0.3], [0, 0, 0], [0.3, 0, 0.3]]
    np.testing.assert_allclose(between_words(weights, word_of, 3), expected, atol=1e-15)


def test_tokens_rows_and_spans_of_the_map_are_the_words_of_the_typed_text(model, probe):
    asked, encoded = subject(model, probe), encode(model.tokenizer, probe)
    attention = read(model, probe).windows[0]
    n_added = len(model.cut.prefix)
    assert len(asked.ids) == len(attention.tokens) == len(asked.word_of) == attention.weights.shape[-1]
    assert asked.word_of[:n_added].tolist() == [ADDED] * n_added and (asked.word_of[n_added:] >= 0).all()
    for place, (start, end) in list(enumerate(attention.spans))[n_added:]:
        first, last = asked.words[asked.word_of[place]].span
        assert first <= start < end <= last
        assert asked.ids[place] == model.tokenizer.token_to_id(attention.tokens[place])
    spans = [word.span for word in asked.words]
    assert all(start < end for start, end in spans) and all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    for start, end in {*word_spans(probe), *encoded.spans}:
        assert any(first <= start and end <= last for first, last in spans), probe[start:end]
    assert {i for i, word in enumerate(asked.words) if word.read} == set(asked.word_of[n_added:].tolist())


def test_unread_words_are_marked(models):
    asked = subject(models["cls"], "good " * 60 + "zebra")
    assert [word.read for word in asked.words] == [True] * 12 + [False] * 38 + [True] * 11
    assert [word.unknown for word in asked.words] == [False] * 60 + [True]


def test_a_review_without_words_is_itself(models):
    asked = subject(models["cls"], "good film")
    np.testing.assert_array_equal(asked.without([]), asked.ids)
    mask, cls = models["cls"].tokenizer.token_to_id("[MASK]"), models["cls"].tokenizer.token_to_id("[CLS]")
    assert asked.without([0, 1]).tolist() == [cls, mask, mask]
    assert asked.without([1]).tolist() == [cls, asked.ids[1], mask]
    assert asked.without([0], remove=True).tolist() == [cls, asked.ids[2]]
    assert asked.without([0, 1], remove=True).tolist() == [cls]


def test_of_a_review_cut_out_whole_a_mask_stays(models):
    asked = subject(models["one-head"], "good film")
    assert asked.without([0, 1], remove=True).tolist() == [models["one-head"].tokenizer.token_to_id("[MASK]")]


@pytest.mark.parametrize("logits", [[1.0, 3.0], [0.5, -1.0, 2.0]])
def test_log_odds_by_hand(logits):
    import torch

    from core.inspection.subject import log_odds

    p = np.exp(logits) / np.exp(logits).sum()
    for target in range(len(logits)):
        found = float(log_odds(torch.tensor([logits], dtype=torch.float64), target))
        assert found == pytest.approx(np.log(p[target] / (1 - p[target])))
