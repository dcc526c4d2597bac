"""Cutting, grouping and padding reviews."""

import numpy as np
import pytest
import torch

from core.config import BiLSTMArchitecture, EncoderArchitecture
from core.data import batches
from core.data.batches import CLS_ID, Cut, Packed, Store, collate, pack, shuffled_steps, token_budget_batches

LENGTHS = {
    "one": np.array([5]),
    "equal": np.full(64, 7),
    "many": np.random.default_rng(3).integers(1, 90, 1001),
    "some longer than the budget": np.array([3, 200, 4, 101, 100, 1, 99]),
    "a pool and one": np.full(51, 100),
}
BUDGET = 100


def head(room: int, truncation: str = "head") -> Cut:
    return Cut(room=room, truncation=truncation, prefix=())


# Batches


def parts_of(lengths: np.ndarray, *sizes: int | None, seed: int = 0) -> list[np.ndarray]:
    return [part for step in shuffled_steps(lengths, sizes[0], np.random.default_rng(seed), *sizes[1:]) for part in step]


@pytest.mark.parametrize("make", [token_budget_batches, parts_of])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_every_review_is_in_one_batch_that_keeps_the_budget(lengths, make):
    batches = make(lengths, BUDGET)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * lengths[batch].max() <= BUDGET for batch in batches)


def test_equal_reviews_fill_their_batches():
    sizes = sorted(len(batch) for batch in token_budget_batches(LENGTHS["equal"], BUDGET))
    assert sizes == [64 % 14] + [14] * (64 // 14)


@pytest.mark.parametrize("sizes", [(400, None), (2800, 400)], ids=["whole", "in parts"])
def test_reviews_of_a_part_are_of_like_length(sizes):
    lengths = LENGTHS["many"]
    padded = [len(part) * lengths[part].max() for part in parts_of(lengths, *sizes)]
    at_random = [lengths[start : start + 8].max() * 8 for start in range(0, 1000, 8)]
    assert sum(padded) < 1.1 * lengths.sum() < 1.5 * lengths.sum() < sum(at_random)


def test_without_a_generator_batches_go_by_length_and_equal_ones_by_place():
    batches = token_budget_batches(np.array([9, 2, 9, 1, 2]), 9)
    assert [batch.tolist() for batch in batches] == [[3, 1, 4], [0], [2]]


def test_the_same_seed_gives_the_same_steps_and_each_epoch_others():
    def epochs(seed: int) -> list[list[list[int]]]:
        rng = np.random.default_rng(seed)
        return [[np.concatenate(step).tolist() for step in shuffled_steps(LENGTHS["many"], BUDGET, rng, 50)] for _ in range(2)]

    first, second = epochs(1)
    assert [first, second] == epochs(1)
    assert epochs(2)[0] != first
    assert {frozenset(step) for step in first} != {frozenset(step) for step in second}, "not only their order"


def test_shuffled_steps_do_not_go_by_length():
    budget = 1000  # so that one pool holds all
    means = [LENGTHS["many"][part].mean() for part in parts_of(LENGTHS["many"], budget)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


@pytest.mark.parametrize(("at_once", "n_parts"), [(None, 1), (5000, 1), (2000, 1), (1999, 2), (500, 4), (350, 6)])
def test_a_step_has_about_the_same_tokens_in_any_number_of_parts(at_once, n_parts):
    lengths = LENGTHS["many"]
    steps = shuffled_steps(lengths, 2000, np.random.default_rng(0), at_once)
    assert all(abs(len(step) - n_parts) <= 1 for step in steps)
    assert sum(map(len, steps)) / len(steps) == pytest.approx(n_parts, rel=0.05)
    assert lengths.sum() / len(steps) == pytest.approx(2000, rel=0.15)


def test_the_parts_of_a_step_are_of_different_lengths():
    lengths = LENGTHS["many"]
    steps = shuffled_steps(lengths, 2000, np.random.default_rng(0), 300)
    means = [[lengths[part].mean() for part in step] for step in steps]
    assert np.std([np.mean(step) for step in means]) < 0.6 * np.std(np.concatenate(means))


# Padding


def ids(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def test_shorter_reviews_are_padded_on_the_right():
    batch = collate([ids(5, 6, 7), ids(8), ids(9, 4)])
    assert batch.input_ids.tolist() == [[5, 6, 7], [8, 0, 0], [9, 4, 0]]
    assert batch.token_mask is not None and batch.token_mask.tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    assert batch.input_ids.dtype == torch.long and batch.token_mask.dtype == torch.bool


@pytest.mark.parametrize("reviews", [[ids(5, 6)], [ids(5, 6), ids(0, 8), ids(1, 1)]])
def test_where_nothing_is_padded_there_is_no_mask(reviews):
    batch = collate(reviews)
    assert batch.token_mask is None
    assert batch.input_ids.tolist() == [review.tolist() for review in reviews]


@pytest.mark.parametrize("reviews", [[], [ids()], [ids(3), ids()]])
def test_a_review_without_a_token_is_refused(reviews):
    with pytest.raises(ValueError, match="a review without a token, expected at least one"):
        collate(reviews)


# Cuts


@pytest.mark.parametrize(
    ("truncation", "room", "kept"),
    [
        ("head", 4, [0, 1, 2, 3]),
        ("head+tail", 4, [0, 1, 8, 9]),
        ("head+tail", 5, [0, 1, 2, 8, 9]),
        ("head+tail", 1, [0]),
        ("head", 10, list(range(10))),
        ("head+tail", 10, list(range(10))),
        ("head+tail", 9, [0, 1, 2, 3, 4, 6, 7, 8, 9]),
        ("head+tail", 11, list(range(10))),
    ],
)
def test_the_cut_by_hand(truncation, room, kept):
    assert head(room, truncation).kept(10).tolist() == kept
    assert head(room, truncation).ids(np.arange(20, 30)).tolist() == [20 + place for place in kept]


@pytest.mark.parametrize(
    ("architecture", "room", "prefix"),
    [
        (EncoderArchitecture(max_len=7), 7, ()),
        (EncoderArchitecture(max_len=7, pooling="mean+max", truncation="head+tail"), 7, ()),
        (EncoderArchitecture(max_len=7, pooling="cls", truncation="head+tail"), 6, (CLS_ID,)),
        (EncoderArchitecture(max_len=2, pooling="cls"), 1, (CLS_ID,)),
        (BiLSTMArchitecture(max_len=7, truncation="head+tail"), 7, ()),
    ],
)
def test_the_cut_of_an_architecture(architecture, room, prefix):
    assert Cut.of(architecture) == Cut(room=room, truncation=architecture.truncation, prefix=prefix)


def test_no_review_is_read_longer_than_max_len():
    cut = Cut.of(EncoderArchitecture(max_len=7, pooling="cls"))
    given = cut.ids(np.arange(20, 40, dtype=np.int32))
    assert given.tolist() == [CLS_ID, 20, 21, 22, 23, 24, 25] and given.dtype == np.int32


def test_a_length_with_room_for_nothing_is_refused():
    with pytest.raises(ValueError, match="max_len: got 1, expected room for a token beside"):
        Cut.of(EncoderArchitecture(max_len=1, pooling="cls"))


@pytest.mark.parametrize("n_tokens", [0, 1, 6, 7, 8, 13, 14, 15, 100])
def test_windows_hold_every_token_once_and_are_about_equal(n_tokens):
    windows = head(7).windows(n_tokens)
    assert np.concatenate(windows).tolist() == list(range(n_tokens))
    sizes = [len(window) for window in windows]
    assert max(sizes) <= 7 and max(sizes) - min(sizes) <= 1
    assert len(windows) == max(1, -(-n_tokens // 7))


def test_a_window_is_given_behind_the_prefix():
    cut = Cut(room=2, truncation="head", prefix=(CLS_ID,))
    review = np.array([11, 12, 13], dtype=np.int32)
    assert [cut.ids(review, kept).tolist() for kept in cut.windows(3)] == [[CLS_ID, 11, 12], [CLS_ID, 13]]


def test_each_window_is_closed_by_the_suffix():
    cut = Cut(room=2, truncation="head", prefix=(CLS_ID,), suffix=(7, 9))
    review = np.array([11, 12, 13], dtype=np.int32)
    assert [cut.ids(review, kept).tolist() for kept in cut.windows(3)] == [[CLS_ID, 11, 12, 7, 9], [CLS_ID, 13, 7, 9]]
    assert cut.ids(review).tolist() == [CLS_ID, 11, 12, 7, 9] and cut.ids(review).dtype == np.int32


# Packing


def test_reviews_are_packed_one_after_the_other():
    packed = pack([ids(5, 6, 7), ids(8), ids(9, 4)])
    assert packed.input_ids.tolist() == [5, 6, 7, 8, 9, 4] and packed.cu_seqlens.tolist() == [0, 3, 4, 6]
    assert (packed.input_ids.dtype, packed.cu_seqlens.dtype) == (torch.long, torch.int32)
    assert packed.max_seqlen == 3


def test_a_pack_holds_every_token_that_is_not_padding():
    reviews = [ids(*range(1, length + 1)) for length in (3, 9, 1, 4)]
    batch, packed = collate(reviews), pack(reviews)
    assert batch.token_mask is not None
    assert torch.equal(batch.input_ids[batch.token_mask], packed.input_ids)


@pytest.mark.parametrize("reviews", [[], [ids()], [ids(3), ids()]])
def test_a_review_without_a_token_is_not_packed(reviews):
    with pytest.raises(ValueError, match="a review without a token, expected at least one"):
        pack(reviews)


@pytest.mark.parametrize("cumulative", [[0, 2], [0, 4], [1, 3], [0, 2, 2, 3], [0, 2, 1, 3], [0, 3]])
def test_lengths_that_are_not_those_of_the_pack_are_our_own_mistake(cumulative):  # pytorch#176793: tokens of no review
    with pytest.raises(AssertionError):
        Packed(torch.tensor([4, 5, 6]), torch.tensor(cumulative, dtype=torch.int32), max_seqlen=2)


# A store of reviews

REVIEWS = [ids(*range(10 * i + 1, 10 * i + 1 + length)) for i, length in enumerate((3, 9, 1, 4, 9, 6))]
CHOICES = [[0], [1, 4], [5, 2, 0], [2, 2], [0, 1, 2, 3, 4, 5]]


@pytest.fixture
def few_shapes(monkeypatch):
    """A store that fills up rows of padded reviews to 4 tokens, and those of packed ones to 8."""
    monkeypatch.setattr(batches, "PADDED_TO", 4)
    monkeypatch.setattr(batches, "PACKED_TO", 8)
    return Store.of(REVIEWS, few_shapes=True)


def filled(indices, length):
    return [REVIEWS[i].tolist() + [0] * (length - len(REVIEWS[i])) for i in indices]


@pytest.mark.parametrize("indices", CHOICES, ids=str)
def test_reviews_are_padded_to_the_longest_of_those_chosen(indices):
    batch, length = Store.of(REVIEWS).padded(np.array(indices)), max(len(REVIEWS[i]) for i in indices)
    assert batch.input_ids.tolist() == filled(indices, length)
    real = [[place < len(REVIEWS[i]) for place in range(length)] for i in indices]
    assert batch.token_mask is None if all(map(all, real)) else batch.token_mask.tolist() == real


@pytest.mark.parametrize("indices", CHOICES, ids=str)
def test_reviews_are_packed_in_the_order_chosen(indices):
    packed = Store.of(REVIEWS).packed(np.array(indices))
    assert packed.input_ids.tolist() == [token for i in indices for token in REVIEWS[i].tolist()]
    assert packed.cu_seqlens.tolist() == [0, *np.cumsum([len(REVIEWS[i]) for i in indices])] and packed.max_seqlen == 9


@pytest.mark.parametrize(
    ("indices", "length"), [([0], 4), ([2, 0], 4), ([5, 2], 8), ([1, 4], 9), ([0, 1, 2, 3, 4, 5], 9)], ids=str
)
def test_padded_reviews_are_of_few_lengths_and_never_longer_than_the_longest(indices, length, few_shapes):
    batch = few_shapes.padded(np.array(indices))
    assert batch.input_ids.tolist() == filled(indices, length)
    assert (
        batch.token_mask is None
        if length == 9 and len(indices) == 2
        else batch.token_mask.sum(-1).tolist() == [len(REVIEWS[i]) for i in indices]
    )


@pytest.mark.parametrize("indices", CHOICES, ids=str)
def test_packed_reviews_are_followed_by_one_of_padding_up_to_a_few_lengths(indices, few_shapes):
    plain, packed = Store.of(REVIEWS).packed(np.array(indices)), few_shapes.packed(np.array(indices))
    total = len(plain.input_ids)
    assert len(packed.input_ids) == -(-total // 8) * 8
    assert packed.input_ids.tolist() == plain.input_ids.tolist() + [0] * (len(packed.input_ids) - total)
    last = [len(packed.input_ids)] * (total % 8 > 0)
    assert packed.cu_seqlens.tolist() == plain.cu_seqlens.tolist() + last and packed.cu_seqlens.dtype == torch.int32
    assert packed.max_seqlen == 9


def test_padding_is_no_longer_than_the_longest_review(monkeypatch):
    monkeypatch.setattr(batches, "PACKED_TO", 64)  # for which there may be no learned positions
    assert Store.of(REVIEWS, few_shapes=True).packed(np.array([0, 5, 2])).cu_seqlens.tolist() == [0, 3, 9, 10, 18]
