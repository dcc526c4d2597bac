from dataclasses import replace

import numpy as np
import pytest
import torch

from core.config import SPECIAL_TOKENS
from core.data.batches import Cut
from core.data.tokenizer import encode
from core.evaluation.scoring import score
from core.inspection import reading
from core.inspection.reading import encode_typed, prediction, read
from core.records import Reading

WORDS = "the film is good and the plot is not bad".split()
"""Each is one token of the small models."""


def review(n: int) -> str:
    """A text of `n` tokens, of which no two windows begin alike."""
    return " ".join(WORDS[i % 7] for i in range(n))


def scored(model, text: str, *, windows: bool = False) -> np.ndarray:
    """Logits of each pass, by the way that tables go."""
    ids, cut = encode(model.tokenizer, text).ids, Cut.of(model.architecture)
    passes = cut.windows(len(ids)) if windows else [cut.kept(len(ids))]
    return score(model.network, [cut.ids(ids, kept) for kept in passes])


def words_of(found: Reading) -> list[str]:
    return [found.text[start:end] for window in found.windows for start, end in window.spans]


@pytest.mark.parametrize("windows", [False, True])
def test_every_row_sums_to_one(model, probe, windows):
    found = read(model, probe, windows=windows)
    for window in found.windows:
        assert window.weights.dtype == np.float32
        assert window.weights.min() >= 0
        assert np.abs(window.weights.sum(-1) - 1).max() < 1e-4
        assert window.largest_row_error < 1e-4


@pytest.mark.parametrize("windows", [False, True])
def test_tokens_weights_and_spans_belong_to_the_typed_text(model, probe, windows):
    found, encoded, prefix = (
        read(model, probe, windows=windows),
        encode(model.tokenizer, probe),
        Cut.of(model.architecture).prefix,
    )
    cls = ["[CLS]"] * len(prefix)
    queries = 1 if model.kind == "bilstm" else None
    n_layers, n_heads = (1, 1) if queries else (model.architecture.n_layers, model.architecture.n_heads)
    for window in found.windows:
        n = len(window.tokens)
        assert window.weights.shape == (n_layers, n_heads, queries or n, n)
        assert len(window.spans) == n <= model.architecture.max_len
        assert list(window.tokens[: len(cls)]) == cls and window.spans[: len(cls)] == ((0, 0),) * len(cls)
        starts = [start for start, _ in window.spans[len(cls) :]]
        assert starts == sorted(starts)
    inner = [(token, span) for w in found.windows for token, span in list(zip(w.tokens, w.spans, strict=True))[len(cls) :]]
    everything = list(zip(encoded.tokens, encoded.spans, strict=True))
    if windows or model.architecture.truncation == "head":
        assert inner == everything[: len(inner)]
    for token, (start, end) in inner:
        assert 0 <= start < end <= len(probe)
        piece = probe[start:end]
        assert token == "[UNK]" or piece.lower() == token.removeprefix("##")
    assert len(inner) == found.prediction.tokens_read
    assert found.prediction.tokens_read + found.prediction.tokens_left_out == len(everything)
    assert found.prediction.tokens_left_out == 0 if windows else True


def test_what_was_read_is_its_tokens_merged(model, probe):
    found = read(model, probe)
    inside = {i for start, end in found.read for i in range(start, end)}
    assert inside == {i for window in found.windows for start, end in window.spans for i in range(start, end)}
    assert all(end < start for (_, end), (start, _) in zip(found.read, found.read[1:], strict=False))


def test_a_reading_answers_what_scoring_a_table_does(model, probe):
    found = read(model, probe).prediction
    np.testing.assert_allclose(found.logits, scored(model, probe)[0], atol=1e-5)
    exponentials = np.exp(np.array(found.logits, dtype=np.float64))
    assert list(found.probabilities) == ["negative", "positive"]
    np.testing.assert_allclose(list(found.probabilities.values()), exponentials / exponentials.sum(), atol=1e-7)
    assert found.label == max(found.probabilities, key=lambda name: found.probabilities[name])


@pytest.mark.parametrize("n", [25, 48, 60, 100])
def test_windows_answer_the_mean_of_their_logits(model, n):
    found = read(model, review(n), windows=True)
    each = scored(model, review(n), windows=True)
    assert len(found.windows) == len(each) == -(-n // Cut.of(model.architecture).room)
    assert np.abs(each - each.mean(0)).max() > 1e-4
    np.testing.assert_allclose(found.prediction.logits, each.mean(0), atol=1e-5)
    sizes = [len(window.tokens) for window in found.windows]
    assert max(sizes) - min(sizes) <= 1
    assert [word for word in words_of(found) if word] == review(n).split()


@pytest.mark.parametrize("text", ["", "   \n\t ", "\u200b\ufeff", "<br />"])
@pytest.mark.parametrize("windows", [False, True])
def test_nothing_to_read_is_refused(model, text, windows):
    with pytest.raises(ValueError, match="got (no text|a text without a visible character), expected a review") as caught:
        read(model, text, windows=windows)
    assert "\n" not in str(caught.value)


def test_half_a_character_is_refused(model):
    with pytest.raises(ValueError, match=r"got '\\udcff' at character 6, which is no Unicode text"):
        read(model, "good \udcff film")


def test_typed_special_tokens_are_ordinary_text(model):
    text = "".join(SPECIAL_TOKENS) + " [PAD] [CLS] <unk> </s> [MASK] [pad] a brake pad"
    encoded, added = encode_typed(model, text), len(Cut.of(model.architecture).prefix)
    assert not {SPECIAL_TOKENS.index(name) for name in ("[PAD]", "[CLS]", "[MASK]")} & set(encoded.ids.tolist())
    for window in read(model, text, windows=True).windows:
        assert window.tokens.count("[CLS]") == added
        assert not {"[PAD]", "[MASK]"} & set(window.tokens)


def test_a_reading_tells_training_mode(with_knobs, models):
    for name in models:
        model = with_knobs(name, dropout=0.5, embedding_dropout=0.5)
        assert not read(model, review(9)).training_mode
        model.network.network.dropout.train()
        assert read(model, review(9)).training_mode
        model.network.train()
        assert read(model, review(9)).training_mode
        assert all(module.training for module in model.network.modules())


def test_twenty_readings_are_one(with_knobs, models):
    for name in models:
        model = with_knobs(name, dropout=0.5, embedding_dropout=0.5, token_dropout=0.5)
        first, *others = [read(model, review(30)) for _ in range(20)]
        for other in others:
            assert other.prediction == first.prediction
            np.testing.assert_array_equal(other.windows[0].weights, first.windows[0].weights)


@pytest.mark.parametrize("name", ["one-head", "imdb-encoder", "imdb-bilstm"])
def test_one_token_attends_to_itself(models, name):
    found = read(models[name], "good")
    assert found.windows[0].tokens == ("good",) and found.windows[0].spans == ((0, 4),) and found.read == ((0, 4),)
    np.testing.assert_array_equal(found.windows[0].weights, 1)


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_around_the_most_that_fits(model, over, windows):
    room = Cut.of(model.architecture).room
    found = read(model, review(room + over), windows=windows)
    left_out = max(over, 0) * (not windows)
    assert (found.prediction.tokens_read, found.prediction.tokens_left_out) == (room + over - left_out, left_out)
    assert len(found.windows) == 1 + (over > 0 and windows)


def test_head_reads_the_first_tokens(models):
    found = read(models["imdb-encoder"], review(60))
    assert words_of(found) == review(60).split()[:24]
    assert found.prediction.tokens_left_out == 36


def test_head_and_tail_reads_the_first_and_the_last(models):
    found = read(models["cls"], review(60) + " terrible")
    assert words_of(found) == ["", *review(12).split(), *review(60).split()[50:], "terrible"]  # 24 places: [CLS], 12, 11
    assert found.prediction.tokens_left_out == 61 - 23
    assert "terrible" not in words_of(read(models["imdb-encoder"], review(60) + " terrible"))


def test_cls_pooling_adds_one_token_of_no_text(models):
    window = read(models["cls"], "good film").windows[0]
    assert (window.tokens, window.spans) == (("[CLS]", "good", "film"), ((0, 0), (0, 4), (5, 9)))
    assert window.weights.shape == (1, 2, 3, 3)


def softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize(("scale", "divisor"), [("sqrt_d_head", 2.0), ("sqrt_d_model", 12**0.5), ("none", 1.0)])
def test_weights_of_the_first_layer_by_hand(with_knobs, pooling, scale, divisor):
    model = with_knobs("imdb-encoder", pooling=pooling, attention_scale=scale)  # 3 heads of 4
    encoder, text = model.network.network, "the plot is good , not the film"
    ids = encode(model.tokenizer, text).ids.tolist()
    ids = ids if pooling == "mean" else [SPECIAL_TOKENS.index("[CLS]"), *ids]
    places, halves = np.arange(len(ids))[:, None], np.arange(6)
    angles = places / 10_000 ** (2 * halves / 12)
    x = encoder.embedding.weight.double().numpy()[ids] + np.stack([np.sin(angles), np.cos(angles)], -1).reshape(-1, 12)
    projection = encoder.layers[0].attention.qkv
    q, k, _ = np.split(x @ projection.weight.double().numpy().T + projection.bias.double().numpy(), 3, axis=-1)
    found = read(model, text).windows[0].weights
    for head in range(3):
        part = slice(4 * head, 4 * head + 4)
        np.testing.assert_allclose(found[0, head], softmax(q[:, part] @ k[:, part].T / divisor), atol=1e-6)
    assert np.abs(found[0, 0] - found[0, 1]).max() > 1e-2


def test_weights_of_the_second_layer_are_those_of_its_input(models):
    model, text = models["imdb-encoder"], "the plot is good , not the film"
    inputs = []
    layer = model.network.network.layers[1].attention
    with layer.register_forward_hook(lambda module, args, output: inputs.append(args[0])):
        found = read(model, text).windows[0].weights[1]
    q, k, _ = layer.qkv(inputs[0][0]).double().unflatten(-1, (3, 3, 4)).permute(1, 2, 0, 3)
    np.testing.assert_allclose(found, torch.softmax(q @ k.mT / 2, dim=-1).numpy(), atol=1e-6)


def test_weights_of_a_bilstm_by_hand(models):
    model, text = models["imdb-bilstm"], "the plot is good , not the film"
    network = model.network.network
    x = network.embedding(torch.from_numpy(encode(model.tokenizer, text).ids).long())[None]
    ahead, back = network.layers[0].ahead(x)[0], network.layers[0].back(x.flip(1))[0].flip(1)
    scores = torch.cat([ahead, back], -1)[0].double() @ network.query.weight[0].double()
    found = read(model, text).windows[0].weights
    np.testing.assert_allclose(found[0, 0, 0], softmax(scores.numpy()), atol=1e-6)


def test_several_maps_are_averaged_by_hand(models):
    window = read(models["imdb-encoder"], "not good , good").windows[0]
    w = window.weights
    assert w.shape == (2, 3, 4, 4)
    cases = {
        (1, 2): w[1, 2],
        (0, None): (w[0, 0] + w[0, 1] + w[0, 2]) / 3,
        (None, 2): (w[0, 2] + w[1, 2]) / 2,
        (None, None): sum(w[layer, head] for layer in range(2) for head in range(3)) / 6,
    }
    for (layer, head), expected in cases.items():
        np.testing.assert_allclose(window.averaged(layer, head), expected, atol=1e-6)
        received = [sum(expected[query, token] for query in range(4)) / 4 for token in range(4)]
        np.testing.assert_allclose(window.received(layer, head), received, atol=1e-6)
        assert window.received(layer, head).sum() == pytest.approx(1, abs=1e-6)


def test_a_spoilt_map_shows_in_its_largest_error(models):
    window = read(models["imdb-encoder"], "not good , good").windows[0]
    spoilt = window.weights.copy()
    spoilt[1, 2, 3] *= 1.25
    assert replace(window, weights=spoilt).largest_row_error == pytest.approx(0.25, abs=1e-5)


def test_more_windows_than_a_review_has_are_refused_before_reading(models, monkeypatch):
    model = models["imdb-encoder"]
    monkeypatch.setattr(reading, "MOST_WINDOWS", 3)
    assert len(read(model, review(72), windows=True).windows) == 3
    with pytest.raises(ValueError, match="a review of 73 tokens, which imdb-encoder reads in 4 windows, expected at most 3"):
        read(model, review(73), windows=True)
    assert read(model, review(73)).prediction.tokens_left_out == 49


def test_an_answer_by_hand():
    found = prediction(("bad", "fair", "good"), np.log(np.array([1, 5, 2], dtype=np.float32)), 9, 7)
    assert found.label == "fair"
    assert found.probabilities == pytest.approx({"bad": 1 / 8, "fair": 5 / 8, "good": 2 / 8})
    assert (found.tokens_read, found.tokens_left_out) == (7, 2)
    sure = prediction(("bad", "good"), np.array([-1e4, 1e4], dtype=np.float32), 1, 1)
    assert sure.probabilities == {"bad": 0.0, "good": 1.0}
