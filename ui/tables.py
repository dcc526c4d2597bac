"""Any table of reviews in a page: which one, which of its columns, what it looks like, and what of it can be used."""

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd
import streamlit as st

from core.data.columns import guess
from core.data.preparation import Prepared
from core.data.table import MAX_UPLOAD_BYTES, Table
from core.data.uploads import Upload, all_uploads, keep
from core.figures.labels import count, shorten
from ui import address, controls, markdown

ROWS = 5
"""Of a table, to see what it holds."""
LONGEST_CELL = 300
"""Characters of a cell that are shown."""


def choose(key: str, sources: Mapping[str, str] = MappingProxyType({})) -> str | Upload | None:
    """The name of one of `sources`, whose values say what they are, or an upload; None before one is chosen.

    A file that is uploaded here is kept and chosen at once; of one that is refused it is said why, and the former choice
    stays. The choice is in the URL under `key`, as the name of the source or the id of the upload.
    """
    place = st.container()
    _take_file(key)
    with place:
        return _choice(key, sources)


def _take_file(key: str) -> None:
    turn, refused = f"{key}_turn", f"{key}_refused"
    file = st.file_uploader(
        "Upload a table: CSV, TSV, JSON lines or Parquet",
        max_upload_size=MAX_UPLOAD_BYTES // 1_000_000,
        key=f"{key}_file_{st.session_state.setdefault(turn, 0)}",
    )
    if file is not None:
        st.session_state[turn] += 1  # another uploader takes the place of this one, which has done its work
        st.session_state.pop(refused, None)
        try:
            with st.spinner(f"Reading {markdown.literal(file.name)}…"):
                controls.remember(key, [keep(file.name, file.getvalue()).id])
        except ValueError as error:
            st.session_state[refused] = f"{error}."
        st.rerun()
    if refused in st.session_state:
        st.error(markdown.literal(st.session_state[refused]), icon=":material/info:")


def _choice(key: str, sources: Mapping[str, str]) -> str | Upload | None:
    uploads = {upload.id: upload for upload in all_uploads()}
    names = [*sources, *uploads]
    labels = dict(zip(names, [*sources, *_labels(list(uploads.values()))], strict=True))
    asked = st.query_params.get(key)
    if asked and asked not in names:
        address.tell(key, f"There is no table {asked!r} here: choose another, or upload it again.")
    wanted = next(iter(controls.chosen(key, names, list(sources)[:1])), None)
    if st.session_state.get(key) != wanted:
        st.session_state[key] = wanted
    chosen = st.selectbox(
        "Reviews",
        names,
        index=0 if sources else None,
        format_func=lambda name: labels.get(name, str(name)),
        key=key,
        placeholder="Choose a table" if names else "Upload a table below",
        on_change=_note,
        args=(key,),
    )
    if chosen is None:
        return None
    if chosen in sources:
        st.caption(markdown.literal(sources[chosen]))
    return uploads.get(chosen, chosen)


def _note(key: str) -> None:
    st.session_state.pop(f"{key}_refused", None)
    chosen = st.session_state[key]
    controls.remember(key, [] if chosen is None else [chosen])


def _labels(uploads: list[Upload]) -> list[str]:
    """What uploads are called in a menu: name and time, and where these are the same the id."""
    labels = [f"{upload.name} ({upload.created.astimezone():%Y-%m-%d %H:%M})" for upload in uploads]
    return [
        label if labels.count(label) == 1 else f"{label} {upload.id}" for label, upload in zip(labels, uploads, strict=True)
    ]


def columns(table: Table, key: str, labelled: bool) -> tuple[tuple[str, ...], str | None]:
    """The columns of text, in the order chosen, and that of the labels, which a table that is not `labelled` may lack.

    Both begin with a guess, the label only where one is needed, and are in the URL.
    """
    names = [str(name) for name in table.frame.columns]
    texts, label = _guess(table)
    text_key, label_key = f"{key}_text", f"{key}_label"
    _forget_another_table(key, (table.name, *names), {text_key: texts, label_key: label if labelled else None})
    left, right = st.columns(2)
    chosen = left.multiselect(
        "Text",
        names,
        default=texts,
        key=text_key,
        bind="query-params",
        help="The reviews. Several columns, such as title and body, are joined by a line break in the order chosen.",
    )
    chosen_label = right.selectbox(
        "Labels" if labelled else "Labels, if there are any",
        names,
        index=names.index(label) if labelled and label is not None else None,
        key=label_key,
        bind="query-params",
        placeholder="Choose the column" if labelled else "None",
        help="The class of each review, as a word or a number." if labelled else "With labels, accuracy is shown.",
    )
    return tuple(chosen), chosen_label


def _guess(table: Table) -> tuple[list[str], str | None]:
    """From a thousand rows or so, spread evenly: many a table is sorted by its labels."""
    return guess(table.frame.iloc[:: max(1, len(table.frame) // 1000)])


def _forget_another_table(key: str, table: tuple[str, ...], guesses: Mapping[str, object]) -> None:
    """Columns chosen in one table are no choice in the next, though it may have columns of the same names."""
    of = f"{key}_columns_of"
    if st.session_state.get(of, table) != table:
        st.session_state.update(guesses)
    st.session_state[of] = table


def preview(table: Table) -> None:
    """The first rows, how many there are, and how the file was read."""
    shown = table.frame.head(ROWS)
    cut = any(len(str(cell)) > LONGEST_CELL for cell in shown.to_numpy().ravel())
    st.dataframe(shown.map(_shown), hide_index=True, placeholder="")
    n_rows, n_columns = table.frame.shape
    said = [f"{count(n_rows, 'row')}, {count(n_columns, 'column')}"]
    said += [f"the first {ROWS} are shown"] if n_rows > ROWS else []
    said += [f"cells are shown up to {LONGEST_CELL} characters"] if cut else []
    st.caption(markdown.literal("; ".join([*said, *table.assumed]) + "."))


def _shown(cell: object) -> str | None:
    if cell is None or cell is pd.NA or isinstance(cell, float) and cell != cell:
        return None
    return shorten(str(cell), LONGEST_CELL)


def summary(prepared: Prepared) -> None:
    """Classes and lengths of the usable reviews, and each row that is left out, with its reason."""
    n = len(prepared.reviews)
    words = prepared.words()
    st.markdown(
        f"{n:,} usable reviews in {len(prepared.reviews.label_names)} classes. Half have up to {words[0.5]:,} words, "
        f"95% up to {words[0.95]:,}, the longest {words[1.0]:,}."
    )
    balance = pd.DataFrame({"class": prepared.balance().keys(), "reviews": prepared.balance().values()})
    balance["share"] = 100 * balance["reviews"] / n
    share = st.column_config.ProgressColumn(format="%.1f%%", min_value=0, max_value=100, color="primary")
    st.dataframe(balance, hide_index=True, column_config={"share": share})
    _left_out(prepared)


def _left_out(prepared: Prepared) -> None:
    for sentence in prepared.changed:
        st.caption(markdown.sentence(sentence))
    if prepared.dropped:
        n = len(prepared.dropped)
        with st.expander(f"All {n:,} rows that are left out" if n > 1 else "The row that is left out"):
            rows = pd.DataFrame({"row": [d.row for d in prepared.dropped], "reason": [d.reason for d in prepared.dropped]})
            st.dataframe(rows, hide_index=True)
            st.caption("Rows count from 1, the line of column names left aside.")
