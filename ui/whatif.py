"""What becomes of an answer where the text or the model is another, and which reviews of the training are like it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from core.data.splits import text_hash
from core.figures.labels import count, percent, shorten, visible
from core.inspection import rewrites
from core.inspection.edits import Weighed, contrast
from ui import compare, controls, explanations, export, loaders, markdown, panels
from ui import contrast as two
from ui.evidence import CUT_HELP
from ui.review_text import as_html

if TYPE_CHECKING:
    from core.inspection.checklist import Checked
    from core.inspection.deletions import Deletions
    from core.inspection.neighbours import Neighbour, Space

EDITED, COPIED = "whatif_edited", "whatif_copied"
"""Where the session holds the changed review, and the review that was put there to be changed."""
SAMPLE = 2_500
"""Reviews of the training that are looked among at first."""
SHOWN = 300
"""Characters of a review in a table; one of them is shown whole below it."""
AROUND = 24
"""Characters that are shown before and after a change."""
SHOULD = {"negation": "move it", "name": "leave it as it is"}
"""What a change of each kind should do to an answer."""
RULES = (
    f"Rules, for English alone: “not” is put after {rewrites.BE_OR_MODAL.replace('|', ', ')}, it's, I'm, you're and the like; "
    f"“not” and “n't” are taken out there and after {rewrites.DO_OR_HAVE.replace('|', ', ')}. That should move the answer: "
    "turn it, or change its probability by 5 points. "
    f"{sum(map(len, rewrites.NAMES))} first names ({', '.join(f'{known[0]} to {known[-1]}' for known in rewrites.NAMES)}) are "
    "each replaced by the next of their list, which should not. No rule knows grammar, and in a long review one “not” may not "
    "count: what is not as it should be is a question, no verdict."
)
NEAREST = (
    "Nearest by the angle between the vectors that the classifier reads: cosine 1 is the same to the model. Near reviews are "
    "answered alike, whatever they are about. "
)


def other_words(name: str, review: str) -> None:
    """The review beside a changed one, which a person types, or beside another review."""
    changed = _edited(review)
    first = explanations.weighed(name, review)
    both = contrast(first, explanations.weighed(name, changed, first.label))
    two.show(both, (name, name), ("as typed", "changed"), key="whatif_words")


def _edited(review: str) -> str:
    """What stands in the second field: the review, until a person changes it."""
    state = st.session_state
    if state.get(EDITED, "") in ("", state.get(COPIED)):
        _copy(review)
    text = st.text_area("The same, changed by you, or another review", key=EDITED, persist_state="session", height=170)
    st.button("Begin again from the review", key="whatif_again", on_click=_copy, args=(review,), icon=":material/undo:")
    return text if text.strip() else review


def _copy(review: str) -> None:
    st.session_state[EDITED] = st.session_state[COPIED] = review


def fewer_words(name: str, review: str) -> None:
    """The least words without which the answer is another."""
    remove = st.toggle("Cut words out", True, key="whatif_cut", bind="query-params", help=CUT_HELP)
    whole, found = explanations.weighed(name, review), explanations.deletions(name, review, remove=remove)
    panels.answer(loaders.model(name), loaders.reading(name, review, windows=False))
    said = without(whole, found)
    st.markdown(markdown.literal(said))
    limit = float(np.abs(whole.values).max(initial=0))
    st.html(two.as_html(whole, found.words, two.GONE, limit))
    marks = "Struck through: those words." if found.flips else ""
    st.caption(f"{two.shades(whole.label, limit)} {marks}")
    if not found.flips:
        return
    table = steps(whole, found)
    st.dataframe(table, hide_index=True, key="whatif_steps", column_config=_percents(table))
    export.downloads(
        export.Export(title="What if some words were gone", table=table, of=two.of([name]), said=[said]), key="whatif_fewer"
    )


def without(whole: Weighed, found: Deletions) -> str:
    """What is left of an answer without some words, and how they were looked for."""
    from core.inspection.deletions import MOST_CANDIDATES, MOST_DELETED

    n_read, answer = sum(word.read for word in whole.words), f"{whole.label} ({percent(found.probabilities[0])})"
    n_tried = min(MOST_CANDIDATES, n_read)
    most = min(MOST_DELETED, n_tried)
    words = ", ".join(f"'{shorten(visible(whole.typed[place]))}'" for place in sorted(found.words))
    said = f"The answer stays {answer}: no set of up to {count(most, 'word')} was found without which it is another."
    if found.flips:
        gone = "the one word read" if n_read == 1 else f"{len(found.words)} of the {n_read} words and signs read"
        said = f"Without {gone}, {words}, the answer turns from {answer} to {found.label}."
        if len(found.words) > 1:
            said += f" With any of them back it is {whole.label} again; another set may be smaller."
    among = f"the {n_tried} words that speak most for it" if n_tried < n_read else "all that was read"
    return f"{said} Looked for among {among}, the strongest first, up to {most} at once."


def steps(whole: Weighed, found: Deletions) -> pd.DataFrame:
    """A row for each word that goes, in order, and what the answer is without it and those above it."""
    first, *others = (whole.typed[place] for place in found.words)
    return pd.DataFrame(
        {
            "without": ["(the whole review)", first, *(f"and {word}" for word in others)],
            f"{whole.label}, %": 100 * found.probabilities,
        }
    )


def checks(name: str, review: str) -> None:
    """Small changes by rule, and whether the answer moves where it should and nowhere else."""
    found = explanations.checked(name, review)
    if not found:
        st.info(
            "No rule applies: the review has none of the auxiliaries and first names below. The rules are for English alone."
        )
        st.caption(RULES)
        return
    said, table = judged(found, rewrites.most(review)), outcomes(found, review)
    st.markdown(markdown.literal(" ".join(said)))
    st.dataframe(table, hide_index=True, key="whatif_checks", column_config=_percents(table))
    st.caption(RULES)
    export.downloads(
        export.Export(title="What if it said not, or another name", table=table, of=two.of([name]), said=said, notes=[RULES]),
        key="whatif_rules",
    )


def judged(found: Sequence[Checked], most: int) -> list[str]:
    """How many changes of each kind do to the answer what they should; of a kind `most` are tried."""
    answer = found[0].before
    said = [f"The answer is {answer.label}, {percent(answer.probabilities[answer.label])}."]
    for kind, should in SHOULD.items():
        own = [one for one in found if one.rewrite.kind == kind and one.is_read]
        if own:
            right, turned = sum(one.is_expected for one in own), sum(one.flips for one in own)
            said.append(
                f"By {kind}: {right} of {len(own)} {should}, as each should; {turned or 'none'} turn{'s' * (turned == 1)} it."
            )
    unread = sum(not one.is_read for one in found)
    said += [f"{unread} more {'is' if unread == 1 else 'are'} where the model does not read."] * bool(unread)
    is_cut = any(sum(one.rewrite.kind == kind for one in found) >= most for kind in SHOULD)
    return [*said, *[f"At most {most} of each kind are tried."] * is_cut]


def outcomes(found: Sequence[Checked], review: str) -> pd.DataFrame:
    """A row for each change: what it is, what becomes of the answer, and where it is."""
    label = found[0].before.label
    rows = []
    for one in found:
        change = one.rewrite
        rows.append({
            "change": f"{change.before} → {change.after}",
            f"{label}, %": 100 * one.after.probabilities[label],
            "points": compare.signed(100 * one.change),
            "answer": f"turns to {one.after.label}" if one.flips else "moves" if one.moves else "stays",
            "as it should": ("yes" if one.is_expected else "no") if one.is_read else "not read",
            "where": _around(review, change.at, len(change.before)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _around(text: str, at: int, length: int) -> str:
    """A piece of the text with what stands around it, in one line."""
    start, end = max(0, at - AROUND), at + length + AROUND
    line = " ".join(text[start:end].split())
    return f"{'…' * (start > 0)}{line}{'…' * (end < len(text))}"


def other_model(name: str, review: str) -> None:
    """The same review through another model."""
    titles = loaders.reader_titles()
    other = controls.one("Beside it", {id: titles[id] for id in sorted(titles, key=lambda id: id == name)}, "whatif_other")
    first = explanations.weighed(name, review)
    both = contrast(first, explanations.weighed(other, review, first.label))
    called = (titles[name], f"{titles[name]} again" if other == name else titles[other])
    two.show(both, (name, other), called, key="whatif_models")


def similar_reviews(name: str, review: str) -> None:
    """The reviews of the training that are most like this one to the model."""
    with st.container(horizontal=True):
        some = st.button(f"Look among {SAMPLE:,}", key="whatif_some", icon=":material/search:")
        every = st.button("Look among all", key="whatif_every", icon=":material/manage_search:")
    among = explanations.space(name, None, ask=every) or explanations.space(name, SAMPLE, ask=some)
    if among is None:
        st.caption(
            f"Reads reviews that the model was trained on, none of its test: {SAMPLE:,} take seconds, all of IMDB's a minute."
        )
        return
    from core.inspection.neighbours import nearest

    found = nearest(loaders.model(name), among, review)
    answer = loaders.reading(name, review, windows=False).prediction.label
    said, table, kept = likeness(found, review, answer), neighbours(found), extent(among)
    st.markdown(markdown.literal(said))
    st.dataframe(table, hide_index=True, key="whatif_neighbours")
    st.caption(f"{NEAREST}{kept}")
    place = st.selectbox("Read one whole", range(1, len(found) + 1), key="whatif_neighbour", width=160)
    text = found[place - 1].text
    st.html(as_html(text, [], [(0, len(text))]))
    export.downloads(
        export.Export(
            title="The most similar reviews of the training", table=table, of=two.of([name]), said=[said], notes=[NEAREST, kept]
        ),
        key="whatif_similar",
    )


def likeness(found: Sequence[Neighbour], review: str, answer: str) -> str:
    """How many of the nearest are labelled as the model answers."""
    alike = sum(one.label == answer for one in found)
    same = " The review itself is among them: it is one of the training." if _is_among(found, review) else ""
    return f"The model answers {answer}; {alike} of the {len(found)} nearest reviews of its training are labelled so.{same}"


def _is_among(found: Sequence[Neighbour], review: str) -> bool:
    return text_hash(review) in {text_hash(one.text) for one in found}


def neighbours(found: Sequence[Neighbour]) -> pd.DataFrame:
    """A row for each, the nearest first; a long text is cut, and ends in an ellipsis."""
    return pd.DataFrame(
        {
            "nearest": range(1, len(found) + 1),
            "cosine": [round(one.cosine, 4) for one in found],
            "label": [one.label for one in found],
            f"review, up to {SHOWN} characters": [shorten(one.text, SHOWN) for one in found],
        }
    )


def extent(among: Space) -> str:
    """Of how many reviews these are the nearest, and what that takes."""
    n, size = among.vectors.shape
    which = "all" if n == among.n_train else f"{n:,} of the"
    spread = "" if n == among.n_train else ", spread evenly"
    return (
        f"Looked among {which} {among.n_train:,} reviews of the training{spread}: vectors of {size} numbers, "
        f"{among.vectors.nbytes / 1e6:.1f} MB of the server's memory."
    )


def _percents(table: pd.DataFrame) -> dict[str, Any]:
    return {name: st.column_config.NumberColumn(format="%.1f") for name in table if name.endswith("%")}


SECTIONS: dict[str, Callable[[str, str], None]] = {
    "other words": other_words,
    "fewer words": fewer_words,
    "not and names": checks,
    "another model": other_model,
    "similar reviews": similar_reviews,
}
"""What a person may try, and what shows it."""


def asked() -> Callable[[str, str], None]:
    """What a person wants to try."""
    chosen = st.segmented_control(
        "Try", list(SECTIONS), default=next(iter(SECTIONS)), required=True, key="whatif_try", bind="query-params", wrap=True
    )
    return SECTIONS[chosen]
