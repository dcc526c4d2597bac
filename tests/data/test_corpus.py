from concurrent.futures import ThreadPoolExecutor

import numpy as np
import platformdirs
import pytest

from core.data import corpus
from core.data import tokenizer as wordpiece

TEXTS = ["good film", "", "the film is not good [PAD] [CLS]", "这部 🤗", "a"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def counted(monkeypatch):
    """How often texts were tokenised."""
    calls = []
    real = corpus._encode
    monkeypatch.setattr(corpus, "_encode", lambda *args: calls.append(1) or real(*args))
    return calls


def test_each_review_is_what_encode_gives(tokenizer, cache, imdb):
    texts = TEXTS + imdb.texts[: corpus.BATCH + 7]
    encoded = corpus.encode_corpus(tokenizer, texts)
    assert len(encoded) == len(texts) and encoded.ids.dtype == np.int32
    for i, text in enumerate(texts):
        ids = wordpiece.encode(tokenizer, text).ids
        assert np.array_equal(encoded[i], ids) and encoded.lengths[i] == len(ids)


def test_indices_are_those_of_a_sequence(tokenizer, cache):
    encoded = corpus.encode_corpus(tokenizer, TEXTS)
    assert [len(ids) for ids in encoded] == encoded.lengths.tolist()
    assert np.array_equal(encoded[-1], encoded[4]) and len(encoded[-1]) == 1
    with pytest.raises(IndexError):
        encoded[5]


def test_the_second_time_comes_from_disk(tokenizer, cache, counted):
    first = corpus.encode_corpus(tokenizer, TEXTS)
    second = corpus.encode_corpus(tokenizer, list(TEXTS))
    assert len(counted) == 1
    assert np.array_equal(first.ids, second.ids) and np.array_equal(first.offsets, second.offsets)
    assert isinstance(second.ids, np.memmap) and not second.ids.flags.writeable


def test_other_texts_or_another_tokenizer_are_another_corpus(tokenizer, cache, counted):
    other = wordpiece.train(["good film"] * 3, 50)
    rows_moved = ["", "good film", *TEXTS[2:]]
    joined = ["good filmthe film is not good", *TEXTS[3:], "", ""]
    for trained, texts in [(tokenizer, TEXTS), (other, TEXTS), (tokenizer, rows_moved), (tokenizer, joined)]:
        assert [len(ids) for ids in corpus.encode_corpus(trained, texts)] == [
            len(wordpiece.encode(trained, text).ids) for text in texts
        ]
    assert len(counted) == 4


@pytest.mark.parametrize("kind", ["ids", "offsets"])
@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:-4], lambda b: b"\0" * len(b), lambda b: b[:20]])
def test_a_damaged_entry_is_rebuilt(tokenizer, cache, counted, kind, damage):
    sound = corpus.encode_corpus(tokenizer, TEXTS).ids.tolist()
    (path,) = cache.rglob(f"*.{kind}.npy")
    path.write_bytes(damage(path.read_bytes()))
    assert corpus.encode_corpus(tokenizer, TEXTS).ids.tolist() == sound
    assert len(counted) == 2


def test_ids_that_do_not_match_the_offsets_are_rebuilt(tokenizer, cache, counted):
    sound = corpus.encode_corpus(tokenizer, TEXTS).ids.tolist()
    np.save(next(cache.rglob("*.ids.npy")), np.zeros(len(sound) - 1, np.int32))
    assert corpus.encode_corpus(tokenizer, TEXTS).ids.tolist() == sound and len(counted) == 2


def test_a_missing_half_is_rebuilt(tokenizer, cache, counted):
    corpus.encode_corpus(tokenizer, TEXTS)
    next(cache.rglob("*.offsets.npy")).unlink()
    assert len(corpus.encode_corpus(tokenizer, TEXTS)) == 5 and len(counted) == 2


def test_writers_may_race_and_leave_nothing_behind(tokenizer, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: corpus.encode_corpus(tokenizer, TEXTS, cache=tmp_path).ids.tolist(), range(16)))
    assert all(result == results[0] for result in results)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2


def test_no_review_at_all(tokenizer, cache):
    assert len(corpus.encode_corpus(tokenizer, [])) == 0
    assert len(corpus.encode_corpus(tokenizer, ["", " "])) == 2


def test_a_cache_that_cannot_be_written_says_what_to_do(tokenizer, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot write there.*set ATTENTION_LAB_CACHE"):
        corpus.encode_corpus(tokenizer, TEXTS, cache=tmp_path / "file")


@pytest.mark.parametrize("unset", [True, False])
def test_without_a_wish_the_cache_is_the_users(monkeypatch, unset):
    monkeypatch.delenv("ATTENTION_LAB_CACHE", raising=False)
    if not unset:
        monkeypatch.setenv("ATTENTION_LAB_CACHE", "")
    assert corpus.cache_folder() == platformdirs.user_cache_path("attention-lab")
