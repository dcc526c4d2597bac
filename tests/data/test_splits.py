import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import splits
from core.data.reviews import Reviews

SIDES = ("train", "validation", "test")


def reviews_of(texts, labels=None):
    labels = labels or [i % 2 for i in range(len(texts))]
    return Reviews(name="toy", texts=list(texts), labels=labels, label_names=("negative", "positive"))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("A  Fine\n\tFilm ", "a fine film"),
        ("one<br /><br />two<BR>three<br/>four", "one two three four"),
        ("Straße", "strasse"),
        ("ｆｕｌｌ　ｗｉｄｔｈ ﬁlm", "full width film"),
        ("cafe\u0301", "caf\u00e9"),
        ("nbsp\u00a0here", "nbsp here"),
        ("a<b", "a<b"),
    ],
)
def test_normalise_by_hand(text, normal):
    assert splits.normalise(text) == normal


@given(st.text())
def test_texts_that_read_alike_have_one_hash(text):
    assert splits.text_hash(f"  {text}\n") == splits.text_hash(text.replace(" ", " <br />")) == splits.text_hash(text)


def test_text_hash_is_a_published_one():
    assert splits.text_hash("ABC") == hashlib.sha256(b"abc").hexdigest()[:16] == "ba7816bf8f01cfea"


@pytest.mark.parametrize(
    ("hash", "name"),
    [
        ("0" * 16, "train"), ("d999999999990000", "train"), ("d9999999999a0000", "validation"),
        ("e666666666660000", "validation"), ("e666666666670000", "test"), ("f" * 16, "test"),
    ],
)  # fmt: skip
def test_sides_begin_at_their_shares(hash, name):
    assert splits.side(hash) == name  # 0.85 = 0xd999... / 2**64 and 0.90 = 0xe666...


def test_no_text_of_imdb_is_on_two_sides(imdb):
    parts = splits.split(imdb)
    seen = [set(parts.hashes[name]) for name in SIDES]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    kept = len(set().union(*seen))
    assert kept + parts.duplicates_dropped == 25_000
    assert parts.duplicates_dropped >= 96, "so many repeat letter for letter"
    for name, hashes in zip(SIDES, seen, strict=True):
        part = getattr(parts, name)
        assert parts.hashes[name] == [splits.text_hash(text) for text in part.texts]
        # four standard deviations of a binomial share
        share = splits.SHARES[name]
        assert abs(len(hashes) / kept - share) < 4 * (share * (1 - share) / kept) ** 0.5
        assert abs(sum(part.labels) / len(part) - 0.5) < 0.06


def test_of_equal_texts_the_first_is_kept():
    texts = [f"review {i}" for i in range(300)]
    parts = splits.split(reviews_of([*texts, "REVIEW  7", "review 7<br />"], [0, 1] * 150 + [0, 0]))
    assert parts.duplicates_dropped == 2
    kept = {
        text: label
        for name in SIDES
        for text, label in zip(getattr(parts, name).texts, getattr(parts, name).labels, strict=True)
    }
    assert kept == {text: i % 2 for i, text in enumerate(texts)}


def test_a_text_stays_on_its_side_when_others_join():
    few, more = (splits.split(reviews_of([f"review {i}" for i in range(n)])) for n in (300, 500))
    for name in SIDES:
        assert getattr(few, name).texts == [t for t in getattr(more, name).texts if int(t.split()[1]) < 300]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_reviews_are_refused_with_their_number(n):
    with pytest.raises(ValueError, match=f"got {n} different reviews, too few for a .*use 200 or more"):
        splits.split(reviews_of([f"review {i}" for i in range(n)]))


def test_one_class_to_train_on_is_refused():
    with pytest.raises(ValueError, match="got 300 different reviews, of which the 2.. to train on are all of one class"):
        splits.split(reviews_of([f"review {i}" for i in range(300)], [1] * 300))


def test_fingerprint_ignores_order_only():
    assert splits.fingerprint(["a", "b"]) == splits.fingerprint(["b", "a"]) == splits.fingerprint({"a", "b"})
    assert len({splits.fingerprint(hashes) for hashes in (["a", "b"], ["ab"], ["a"], ["a", "b", "b"], [])}) == 5
