import numpy as np
import pytest

from core.inspection import rewrites as rules
from core.inspection.checklist import check
from core.inspection.rewrites import NAMES, names, negations, rewrites
from tests.inspection.linear import bag_of_words


@pytest.mark.parametrize(("text", "expected"), [
    ("The plot is good.", ["The plot is not good."]),
    ("The plot is not good.", ["The plot is good."]),
    ("It isn't good.", ["It is good."]),
    ("It isn’t good.", ["It is good."]),
    ("I don't like it.", ["I do like it."]),
    ("I do like it.", []),
    ("They have seen it, and had not liked it.", ["They have seen it, and had liked it."]),
    ("You can't miss it.", ["You can miss it."]),
    ("You cannot miss it.", ["You can miss it."]),
    ("You can not miss it.", ["You can miss it."]),
    ("You can miss it.", ["You can not miss it."]),
    ("I won't miss it.", ["I will miss it."]),
    ("It's good.", ["It's not good."]),
    ("It’s not good.", ["It’s good."]),
    ("I'm sure.", ["I'm not sure."]),
    ("They're not bad.", ["They're bad."]),
    ("It IS good.", ["It IS NOT good."]),
    ("It ISN'T good, and CAN'T be.", ["It IS good, and CAN'T be.", "It ISN'T good, and CAN be."]),
    ("Was it good?", ["Was not it good?"]),
    ("is\n not", ["is"]),
    ("It was good, it is not now.", ["It was not good, it is not now.", "It was good, it is now."]),
    ("A canny island must mustard.", ["A canny island must not mustard."]),
    ("The director's cut, nothing but a knot.", []),
    ("这部电影太棒了", []),
    ("", []),
])  # fmt: skip
def test_negations(text, expected):
    assert [change.text for change in negations(text)] == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("John's film. I like John.", ["Robert's film. I like Robert."]),
    ("John met Robert.", ["Michael met Robert.", "John met Michael."]),
    ("Tom met Mary and Johnny.", ["James met Mary and Johnny.", "Tom met Patricia and Johnny."]),
    ("john, Johnson and St.John", ["john, Johnson and St.Robert"]),
    ("Nobody is here.", []),
])  # fmt: skip
def test_names(text, expected):
    assert [change.text for change in names(text)] == expected


def test_a_text_of_every_name_still_has_others_for_them():
    everyone = " ".join(name for known in NAMES for name in known)
    changed = list(names(everyone))
    assert len(changed) == sum(map(len, NAMES)) == len({name for known in NAMES for name in known})
    assert all(change.before not in change.text.split() and change.after in change.text.split() for change in changed)


def test_places_are_the_first():
    text = "Tom isn't John, and John is not Tom."
    assert [(change.before, change.at) for change in rewrites(text)] == [
        ("isn't", 4), ("is not", 25), ("John", 10), ("Tom", 0),
    ]  # fmt: skip


def test_only_the_first_are_taken(monkeypatch):
    monkeypatch.setattr(rules, "MOST", 2)
    assert [(change.kind, change.before) for change in rewrites("It is, was and will be John, Mary and Emma.")] == [
        ("negation", "is"), ("negation", "was"), ("name", "John"), ("name", "Mary"),
    ]  # fmt: skip


def test_of_a_very_long_text_few_are_made(monkeypatch):
    monkeypatch.setattr(rules, "MOST_CHARACTERS", 100)
    text = "It is, was and will be John, Mary and Emma. "
    assert (rules.most(""), rules.most(text), rules.most(text * 1000)) == (100, 2, 1)
    assert [(change.kind, change.before) for change in rewrites(text * 1000)] == [("negation", "is"), ("name", "John")]


def test_answers_are_those_of_the_changed_texts(models):
    bag = bag_of_words(models["one-head"], {"good": 1.0, "not": -3.0, "is": 0.5})
    found = check(bag, "John is good and Mary is not bad")
    negated, affirmed, *named = found
    assert [one.rewrite.after for one in found] == ["is not", "is", "Robert", "Patricia"]
    sigmoid = [1 / (1 + np.exp(1.0)), 1 / (1 + np.exp(4.0)), 1 / (1 + np.exp(-2.0))]  # of 1 + 0.5 + 0.5 - 3, and so on
    for one, p in zip((negated, affirmed), sigmoid[1:], strict=True):
        assert one.before.probabilities["positive"] == pytest.approx(sigmoid[0], abs=1e-6)
        assert one.after.probabilities["positive"] == pytest.approx(p, abs=1e-6)
        assert one.moves and one.is_expected and one.is_read
    assert (negated.flips, affirmed.flips) == (False, True)
    assert negated.change == pytest.approx(sigmoid[0] - sigmoid[1], abs=1e-6)  # of "negative", the answer before
    assert all(one.change == 0 and one.is_expected and not one.moves and not one.flips for one in named)


def test_a_name_that_moves_and_a_negation_that_does_not_are_unexpected(models):
    (still,) = check(bag_of_words(models["one-head"], {"good": 0.01}), "it is good")
    assert not still.moves and not still.is_expected
    tokens = [models["one-head"].tokenizer.encode(name).tokens for name in ("John", "Robert")]
    (of_john,) = set(tokens[0]) - set(tokens[1])
    (moved,) = check(bag_of_words(models["one-head"], {of_john: 3.0}), "John")
    assert moved.moves and not moved.is_expected


def test_what_was_cut_off_is_not_read(model):
    far = check(model, "film " * 60 + "is good " + "film " * 60)[0]
    assert not far.is_read and far.change == 0
    assert check(model, "it is good")[0].is_read


def test_every_probe_is_checked_or_has_nothing_to_check(models, probe):
    for one in check(models["one-head"], probe):
        assert one.rewrite.text != probe and sum(one.after.probabilities.values()) == pytest.approx(1)
