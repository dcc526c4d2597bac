"""Many reviews and what models make of them: where they come from, the progress, the findings and the table."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

import pandas as pd
import streamlit as st

from core.data.preparation import join_texts
from core.data.table import column
from core.data.uploads import Upload
from core.evaluation.answers import Order, Scored, accuracy, arrange, difference, side_by_side, with_answers
from core.evaluation.pasted import split_pasted
from core.evaluation.writing import csv_for_excel, inert, rendered
from core.figures.labels import interval, shorten
from ui import answer_table, export, loaders, markdown, panels, tables

MOST = 10_000
"""Rows of a page: some minutes of work for two models on two cores."""
PASTE, TABLE = "Paste reviews", "Choose a table"


@dataclass(frozen=True, kw_only=True)
class Reviews:
    """What is to be scored."""

    original: pd.DataFrame
    """All columns as they came; of pasted reviews one."""
    texts: Sequence[str | None]
    """Of each row; None for one without text."""
    labels: Sequence[object] | None
    """Of each row, if the table has them."""
    name: str
    """What a file of it is called, without its ending."""
    pasted: bool
    key: str
    """Differs where the texts do."""


def reviews() -> Reviews | None:
    """The reviews that a person pastes or uploads; None, and a sentence, before there are any.

    ValueError for more than `MOST` rows, and for columns that hold no text.
    """
    source = st.radio(
        "Reviews from",
        [PASTE, TABLE],
        index=int("score_data" in st.query_params),  # an address names a table
        horizontal=True,
        key="score_from",
        persist_state="session",
        label_visibility="collapsed",
    )
    return _pasted() if source == PASTE else _from_table()


def _pasted() -> Reviews | None:
    text = st.text_area(
        "Reviews, one per line",
        key="score_text",
        persist_state="session",
        height=200,
        placeholder="A wonderful film.\nTwo hours that I shall never see again.\n…",
    )
    by_blank_lines = st.toggle(
        "A blank line between reviews", key="score_blank_lines", bind="query-params", help="For reviews of several lines."
    )
    texts = split_pasted(text, by_blank_lines=by_blank_lines)
    if not texts:
        st.info("Nothing to score yet: paste reviews above, one per line, or choose a table.")
        return None
    _refuse_many(len(texts))
    st.caption(f"Found {len(texts):,} {'review' if len(texts) == 1 else 'reviews'}.")
    return Reviews(
        original=pd.DataFrame({"review": texts}),
        texts=_readable(texts),
        labels=None,
        name="reviews",
        pasted=True,
        key="\0".join(texts),
    )


def _from_table() -> Reviews | None:
    upload = tables.choose("score_data")
    if not isinstance(upload, Upload):
        st.info(f"Choose a table that was uploaded before, or upload one of up to {MOST:,} rows.")
        return None
    table = loaders.table(upload.id)
    _refuse_many(len(table.frame))
    tables.preview(table)
    text_columns, label_column = tables.columns(table, "score_data", labelled=False)
    if not text_columns:
        st.info("Choose the column that holds the reviews.")
        return None
    texts = _readable(join_texts(table.frame, text_columns))
    if not any(texts):
        raise ValueError(f"no row has text in {', '.join(map(repr, text_columns))}; choose another column")
    labels = None if label_column is None else column(table.frame, label_column)
    key = repr((upload.id, text_columns))
    return Reviews(original=table.frame, texts=texts, labels=labels, name=upload.path.stem, pasted=False, key=key)


def _refuse_many(n: int) -> None:
    if n > MOST:
        raise ValueError(
            f"got {n:,} rows, expected at most {MOST:,} in this page; a larger table is scored from the command line: "
            f"python -m core predict --model models/imdb-encoder --file reviews.csv"
        )


def _readable(texts: Sequence[str | None]) -> list[str | None]:
    from core.data.tokenizer import is_blank

    return [None if not text or is_blank(text) else text for text in texts]


def answers(names: Sequence[str], found: Reviews) -> list[Scored]:
    """What the models answer that have been asked for all reviews; a button asks the others."""
    with st.container():  # what follows keeps its place on the page, whether there is anything to ask or not
        _ask_for_missing(names, found)
    scored = []
    for name in names:
        if _missing(name, found) == []:
            with panels.refusals():
                scored.append(loaders.scored(name, found.texts))
    return scored


def _ask_for_missing(names: Sequence[str], found: Reviews) -> None:
    todo = {name: missing for name in names if (missing := _missing(name, found))}
    if not todo:
        return
    n = sum(text is not None for text in found.texts)
    by = "" if len(todo) == len(names) else f" with {markdown.literal(' and '.join(map(loaders.model_title, todo)))}"
    place = st.empty()
    pressed = place.button(f"Score {n:,} {_reviews(n)}{by}", type="primary", key="score_go")
    if pressed:
        _ask(todo)
        if not any(_missing(name, found) for name in todo):
            place.empty()
        return
    total = len(set(found.texts) - {None}) * len(todo)
    there = total - sum(map(len, todo.values()))
    if there:
        st.caption(f"{there:,} of {total:,} answers are there already.")


def _missing(name: str, found: Reviews) -> list[str] | None:
    """The texts that a model has not been asked for; None, and a sentence, if it is not there."""
    with panels.refusals():
        return loaders.unanswered(name, found.texts)
    return None


def _reviews(n: int) -> str:
    return "review" if n == 1 else "reviews"


def _ask(todo: Mapping[str, Sequence[str]]) -> None:
    """Each model in turn, with a bar that says how long it will take."""
    total, done, began = sum(map(len, todo.values())), 0, time.monotonic()
    bar, stop = st.progress(0.0, text="Opening the models…"), st.empty()
    stop.button("Stop", key="score_stop", help="Answers that are there already are kept.")
    for name, texts in todo.items():
        read, title = 0, markdown.literal(loaders.model_title(name))
        with panels.refusals():
            for n in loaders.ask(name, texts):
                read, done = read + n, done + n
                left_s = (time.monotonic() - began) / done * (total - done)
                bar.progress(done / total, text=f"{title}: {read:,} of {len(texts):,} reviews, about {left_s:.0f} s left")
    bar.empty()
    stop.empty()


def findings(scored: Sequence[Scored], found: Reviews) -> None:
    """What the answers amount to: how many of each class, how often the models disagree, how often they are right."""
    for one in scored:
        st.markdown(f"**{markdown.literal(one.model)}**: {markdown.literal(_counted(one, found))}")
    blank = sum(text is None for text in found.texts)
    if blank:
        st.markdown(f"{_rows_have(blank)} no text, of {len(found.texts):,}: the table keeps such rows, without a label.")
    if len(scored) == 2:
        st.markdown(_disagreement(*scored))


def _counted(one: Scored, found: Reviews) -> str:
    counts = Counter(label for label in one.labels() if label is not None)
    n = counts.total()
    shares = ", ".join(f"{k:,} {label} ({k / n:.0%})" for label, k in counts.most_common(8)) if n else "no answer"
    more = f" and {len(counts) - 8} more classes" if len(counts) > 8 else ""
    right = "" if found.labels is None else " " + _right(one, found.labels)
    return f"{shares}{more}.{right}"


def _right(one: Scored, labels: Sequence[object]) -> str:
    found = accuracy(one, labels)
    parts = ["No row has a label that it knows" if found.interval is None else
             f"{found.right / found.n:.1%} agree with the table's labels "
             f"({interval(*found.interval)}, n = {found.n:,})"]  # fmt: skip
    if found.unknown:
        parts.append(f"{_rows_have(found.unknown)} a label other than {', '.join(one.label_names[:8])}, and no part in this")
    if found.unlabelled:
        parts.append(f"{_rows_have(found.unlabelled)} no label")
    return "; ".join(parts) + "."


def _rows_have(n: int) -> str:
    return "1 row has" if n == 1 else f"{n:,} rows have"


def _disagreement(a: Scored, b: Scored) -> str:
    if difference(a, b) is None:
        return (
            f"The classes have different names ({markdown.literal(', '.join(a.label_names[:8]))} and "
            f"{markdown.literal(', '.join(b.label_names[:8]))}), so it cannot be told where the models disagree."
        )
    pairs = [(x, y) for x, y in zip(a.labels(), b.labels(), strict=True) if x is not None]
    n = sum(x != y for x, y in pairs)
    return f"The models disagree on {n:,} of {len(pairs):,} reviews ({n / len(pairs):.1%})."


def table(names: Sequence[str], scored: Sequence[Scored], found: Reviews) -> None:
    """A row for each review, in the order chosen; the review of a row that is ticked can be opened in Inspect."""
    every = side_by_side(found.texts, scored)
    can_differ = "difference" in every
    orders = [order for order in get_args(Order) if can_differ or order != "largest difference first"]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        order = st.selectbox(
            "Order", orders, key="score_order", bind="query-params", width=280,
            help="Of two models, the less confident one of each row counts." if len(scored) == 2 else None,
        ) or orders[0]  # fmt: skip
        only = can_differ and st.toggle("Only where they disagree", key="score_disagree", bind="query-params")
    shown = arrange(every, order, only_disagreeing=bool(only))
    if shown.empty:
        st.info("The models agree on every review.")
        return
    # a table of other rows, or of the same in another order, is another one: a tick counts places, not reviews
    key = answer_table.key("score_table", found.key, [one.model for one in scored], order, only)
    place = answer_table.ticked(shown, [one.model for one in scored], key)
    st.caption(
        f"{len(shown):,} of {len(every):,} rows. Reviews are shown up to {answer_table.LONGEST_CELL} characters, and whole in "
        "the files. Probabilities are of the label given, rounded down; left out are the words beyond what a model reads."
    )
    _open(names, None if place is None else int(shown["row"].iloc[place]), found)


def _open(names: Sequence[str], row: int | None, found: Reviews) -> None:
    text = None if row is None else found.texts[row - 1]
    said = "Tick a row to see where the models look in its review."
    if row is not None:
        said = f"Row {row:,} has no text." if text is None else f"Row {row:,}: {shorten(text, 60)}"
    answer_table.open_in_inspect("score", names, text, said)


def downloads(names: Sequence[str], scored: Sequence[Scored], found: Reviews) -> None:
    """The whole table with the answers, and what was found on the page, made when it is asked for."""
    with st.container(horizontal=True):
        for name, make, suffix, mime in (
            ("CSV", as_csv, "csv", "text/csv"),
            ("Parquet", as_parquet, "parquet", "application/vnd.apache.parquet"),
        ):
            file = f"{found.name}.scored.{suffix}"
            export.button(f"Download {name}", partial(make, scored, found), file, mime, f"score_{suffix}")
    told = export.Export(
        title=f"{found.name}, scored",
        table=side_by_side(found.texts, scored),
        of=export.of_models(names),
        said=[f"{one.model}: {_counted(one, found)}" for one in scored],
        notes=["Probabilities are of the label given; left out are the words beyond what a model reads."],
    )
    export.downloads(told, "score_answers", csv=False)


def as_csv(scored: Sequence[Scored], found: Reviews) -> bytes:
    """For Excel, too: a cell of an upload stays as it is, a pasted line becomes no formula by becoming a cell."""
    original = found.original
    if found.pasted:
        original = pd.DataFrame({"review": inert(original["review"].tolist())})
    return csv_for_excel(with_answers(original, scored, for_spreadsheets=True))


def as_parquet(scored: Sequence[Scored], found: Reviews) -> bytes:
    """With texts as they are."""
    return rendered(with_answers(found.original, scored), ".parquet")
