"""Reviews as a file of arrays."""

import numpy as np
import pytest

from benchmarks import arrays as files


def test_what_is_saved_is_loaded(arrays, setting):
    loaded = files.of(setting)
    for name, value in vars(arrays).items():
        np.testing.assert_array_equal(getattr(loaded, name), value)


def test_reviews_of_a_side_are_cut_and_come_again_after_the_last(arrays):
    assert [ids.tolist() for ids in arrays.reviews("train", 2, start=3, n=3)] == [[13, 13], [10], [11, 11]]
    assert arrays.classes("train", start=3, n=3).tolist() == [1, 0, 1]
    assert [ids.tolist() for ids in arrays.reviews("validation", 9)] == [[14] * 5]
    assert [len(ids) for ids in arrays.reviews("test", 9)] == [6, 7]


def test_the_first_reviews_of_a_side_are_of_both_classes():
    arrays = files.made(limit=2_000)
    assert 0.3 < arrays.classes("train", n=100).mean() < 0.7


def test_the_file_holds_no_objects(setting):
    with np.load(setting.arrays, allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "iu" for name in file)


def test_without_a_file_it_is_said_how_to_make_one(tmp_path):
    with pytest.raises(ValueError, match="there are no arrays; write them by python -m benchmarks.arrays"):
        files.load(tmp_path / "arrays.npz")
