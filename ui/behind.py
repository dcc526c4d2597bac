"""The reviews behind a figure: which ones are wanted, a table of them, and on to Inspect with the models."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.catalog import SOURCES
from core.data.checks import COUNTED, SideCheck
from core.evaluation.answers import Order, arrange
from core.evaluation.behind import OF_ONE, OF_TWO, Wanted, Which, answered, confusion, wanted_places
from core.evaluation.predictions import Predictions, aligned
from core.figures.labels import interval
from core.statistics import share
from ui import answer_table, compare, controls, export, loaders, markdown, panels
from ui.review_text import as_html

TEST = "test"
ANY = "any"
ORDERS: tuple[Order, ...] = ("most confident first", "least confident first", "largest difference first")
READ = "Read is the share of a review's tokens that a model reads."
LONGEST = 10**6
"""Words that a person may ask for."""


@dataclass(frozen=True, kw_only=True)
class Behind:
    """What one model, or two, answered for the same reviews."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    of: str
    """test, or a data set of the catalogue."""
    answers: tuple[Predictions, ...]
    label_names: tuple[str, ...]


def opened(names: Sequence[str], of: str) -> Behind | None:
    """What the models answered, the second in the order of the first; it is said of one which cannot be shown, and why."""
    found: dict[str, Predictions] = {}
    for name in names:
        with panels.refusals():
            answers = loaders.predictions(name, of)
            found[name] = _beside(next(iter(found.items())), name, answers) if found else answers
    if not found:
        return None
    first, answers = next(iter(found.items()))
    return Behind(
        names=tuple(found),
        titles=tuple(map(loaders.model_title, found)),
        of=of,
        answers=tuple(found.values()),
        label_names=loaders.label_names(first, answers.n_classes),
    )


def _beside(first: tuple[str, Predictions], name: str, answers: Predictions) -> Predictions:
    try:
        return aligned(first[1], answers)
    except ValueError as error:
        both = f"{loaders.model_title(name)} cannot be shown beside {loaders.model_title(first[0])}"
        raise ValueError(f"{both}: {error}") from error


def of_which() -> str:
    """The reviews that a person wants to look into: the models' test side, or a data set of one-sentence reviews."""
    sets = {TEST: "the models' test reviews", "rotten-tomatoes": "rotten-tomatoes, one sentence each"}
    assert sets.keys() - {TEST} <= SOURCES.keys()
    return controls.one("Reviews", sets, "reviews_of")


def matrices(found: Behind) -> None:
    """How often each class is answered to be each; a cell that is ticked chooses its reviews."""
    cells = st.grid(len(found.names), min_column_width=320, gap="large")
    for place, answers in enumerate(found.answers):
        with cells.cell():
            st.markdown(f"**{markdown.literal(found.titles[place])}**: {markdown.literal(standing(found, place))}")
            _matrix(found, place, answers)


def standing(found: Behind, place: int) -> str:
    """How often a model is right, and how often one would be that answers the same always."""
    answers = found.answers[place]
    right, most = share(int(answers.correct.sum()), len(answers)), pd.Series(answers.labels).value_counts()
    assert right is not None
    often = found.label_names[int(most.index[0])]
    return (
        f"right in {right.value:.1%} of {len(answers):,} reviews ({interval(right.low, right.high)}); always "
        f"answering “{often}” would be right in {most.iloc[0] / len(answers):.1%}."
    )


def _matrix(found: Behind, place: int, answers: Predictions) -> None:
    said = [f"answered {name}" for name in found.label_names]
    counts = pd.DataFrame(confusion(answers), index=pd.Index(found.label_names, name="label"), columns=said)
    keys = ("reviews_label", f"reviews_answer_{place + 1}")
    chosen = [st.query_params.get(key) for key in keys]
    event = st.dataframe(
        counts,
        # once a cell is chosen it is another table, in which none is ticked: the choice may be changed below
        key=answer_table.key(f"reviews_matrix_{place}", found.names, found.of, chosen),
        on_select="rerun",
        selection_mode="single-cell",
        column_config={name: st.column_config.NumberColumn(format="%,d") for name in said},
    )
    for row, column in event["selection"]["cells"]:
        cell = [str(row), str(said.index(column))]
        if cell != chosen:
            for key, value in zip(keys, cell, strict=True):
                controls.remember(key, [value])
            st.rerun()


def wanted(found: Behind) -> tuple[Wanted, Order]:
    """Which of the reviews a person wants to see, and in which order; every choice is in the URL."""
    classes = {ANY: ANY} | {str(i): name for i, name in enumerate(found.label_names)}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        which = _which(found)
        label = controls.one("Label", classes, "reviews_label")
        answers = [
            controls.one(f"Answer of {markdown.literal(title)}", classes, f"reviews_answer_{number}")
            for number, title in enumerate(found.titles, 1)
        ]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        shortest = st.number_input("Words, from", 0, LONGEST, 0, key="reviews_from", bind="query-params", width=150)
        longest = st.number_input(
            "to", 0, LONGEST, None, key="reviews_to", bind="query-params", width=150, placeholder="no limit"
        )
        order = _order(found)
    return Wanted(
        which=which, label=_class(label), answers=tuple(map(_class, answers)), shortest=shortest, longest=longest
    ), order


def _order(found: Behind) -> Order:
    orders = ORDERS if len(found.names) == 2 else ORDERS[:-1]
    help = "Of two models, the less confident one of each review counts." if len(found.names) == 2 else None
    return st.selectbox("Order", orders, key="reviews_order", bind="query-params", width=280, help=help) or orders[0]


def _which(found: Behind) -> Which:
    chosen = controls.one("Which", _titles_of_which(found), "reviews_which")
    return next(which for which in (*OF_ONE, *OF_TWO) if which == chosen)


def _titles_of_which(found: Behind) -> dict[str, str]:
    if len(found.titles) == 1:
        return {which: which for which in OF_ONE}
    first, second = found.titles
    return {which: which.replace("the first", first) if "the first" in which else which.replace("the second", second)
            for which in OF_TWO}  # fmt: skip


def _class(chosen: str) -> int | None:
    return None if chosen == ANY else int(chosen)


def table(found: Behind, wanted: Wanted, order: Order) -> None:
    """A row for each wanted review; the one that is ticked stands below, whole, and can be opened in Inspect."""
    places = wanted_places(found.answers, wanted)
    if not len(places):
        st.info("There is no such review.")
        return
    answers = [one.take(places) for one in found.answers]
    texts = _texts(found, answers[0])
    shown = arrange(answered(answers, found.titles, found.label_names, texts), order)
    key = answer_table.key("reviews_table", found.names, found.of, wanted, order)
    place = answer_table.ticked(shown, found.titles, key)
    st.caption(
        f"{len(places):,} of {len(found.answers[0]):,} reviews, shown up to {answer_table.LONGEST_CELL} characters, and whole "
        f"in the files. {READ} Probabilities are of the answer given, rounded down."
    )
    text = None if place is None else shown["review"].iloc[place]
    _one(found, text if isinstance(text, str) else None, ticked=place is not None)
    export.downloads(taken(found, wanted, shown), "reviews_table")


def taken(found: Behind, wanted: Wanted, shown: pd.DataFrame) -> export.Export:
    """The reviews of the table, whole, as files."""
    return export.Export(
        title=f"Reviews behind {' and '.join(found.titles)}",
        table=shown.drop(columns="row"),
        of=[
            f"{len(shown):,} of {len(found.answers[0]):,} reviews: {described(found, wanted)}.",
            *export.of_models(found.names),
        ],
        said=[f"{title}: {standing(found, place)}" for place, title in enumerate(found.titles)],
        notes=[READ, "Probabilities are of the answer given."],
    )


def described(found: Behind, wanted: Wanted) -> str:
    """Which reviews are wanted, in words."""
    of = "test reviews" if found.of == TEST else found.of
    said = [of, _titles_of_which(found)[wanted.which]]
    said += [] if wanted.label is None else [f"label {found.label_names[wanted.label]}"]
    answers = zip(found.titles, wanted.answers, strict=False)
    said += [f"answer of {title} {found.label_names[answer]}" for title, answer in answers if answer is not None]
    longest = f"to {wanted.longest:,} words" if wanted.longest is not None else "words on"
    said += [f"from {wanted.shortest:,} {longest}"] if wanted.shortest or wanted.longest is not None else []
    return ", ".join(said)


def _texts(found: Behind, answers: Predictions) -> list[str | None]:
    """The text of each review; it is said of how many there is none, and why."""
    texts: dict[str, str] = {}
    reason = "the data are not what they were when the model was trained"
    try:
        texts = loaders.texts(found.names[0], found.of)
    except ValueError as error:
        reason = str(error)
    kept = [texts.get(hash) for hash in answers.hashes.tolist()]
    missing = kept.count(None)
    if missing:
        of = "The texts" if missing == len(kept) else f"The texts of {missing:,} of these {len(kept):,} reviews"
        st.warning(markdown.literal(f"{of} cannot be found: {reason}."), icon=":material/warning:")
    return kept


def _one(found: Behind, text: str | None, *, ticked: bool) -> None:
    said = "Tick a row to read its review."
    if text is not None:
        st.html(as_html(text, [], [(0, len(text))]))
        said = "See where the models look in this review."
    elif ticked:
        said = "The text of this review is not here."
    answer_table.open_in_inspect("reviews", found.names, text, said)


def checks(found: Behind) -> None:
    """On demand, whether the reviews of each side are fit to measure these models on."""
    st.subheader("Are these reviews sound?")
    if found.of != TEST:
        st.markdown(f"They are all of {markdown.literal(found.of)}, of which these models have seen none.")
        return
    if not st.toggle("Check them", key="reviews_checks", bind="query-params", help="Takes some seconds."):
        return
    with panels.refusals():
        st.dataframe(_checked(found), hide_index=True, key="reviews_checked")
        st.caption(
            "A review that the training side has, too, can be known by heart. Reviews are split by their text, so that none is "
            "there exactly; word for word counts those, too, that differ in their signs alone. Unknown are the words and signs "
            f"that a model's tokeniser cannot spell, counted in up to {COUNTED:,} reviews of each side."
        )


def _checked(found: Behind) -> pd.DataFrame:
    """A row for each side."""
    sides = loaders.side_checks(found.names[0])
    return pd.DataFrame(
        [
            {"side": side, "reviews": f"{check.n:,}"}
            | {name: f"{part:.1%}" for name, part in check.balance.items()}
            | _learnt(side, check)
            | {
                f"unknown to {title}": f"{loaders.unknown_words(name, side):.2%}"
                for name, title in zip(found.names, found.titles, strict=True)
            }
            for side, check in sides.items()
        ]
    )


def _learnt(side: str, check: SideCheck) -> dict[str, str]:
    there = {"also in training": check.exactly, "word for word": check.word_for_word}
    return {name: compare.ITSELF if side == "train" else f"{n:,}" for name, n in there.items()}
