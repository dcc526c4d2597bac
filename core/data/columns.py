"""Columns of a table by name and content: which hold texts and labels, and how they are called."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from core.data.labels import MAX_CLASSES, label_key

TEXT_NAMES = (
    *("text", "review", "reviews", "review_text", "reviewtext", "review_body", "comment", "comments", "content", "body"),
    *("sentence", "message", "tweet", "description", "texto", "texte", "kommentar", "bewertungstext"),
    *("内容", "评论", "评论内容", "評論", "文本", "评价", "本文", "レビュー", "отзыв", "текст", "리뷰"),
)
LABEL_NAMES = (
    *("label", "labels", "sentiment", "class", "target", "polarity", "category", "y"),
    *("rating", "ratings", "stars", "star", "star_rating", "score", "overall", "note", "bewertung"),
    *("标签", "情感", "评分", "星级", "ラベル", "評価", "оценка", "평점"),
)
_FEW_CLASSES = 20  # of a column that nothing but its content makes a label


def is_known(name: str) -> bool:
    """Whether columns of texts or labels are usually called so."""
    return _folded(name) in TEXT_NAMES + LABEL_NAMES


def guess(frame: pd.DataFrame) -> tuple[list[str], str | None]:
    """The column that probably holds the texts and the one that holds the labels, if there is one.

    Usual names count first; then the texts are the longest ones, and the labels are of the fewest different values, two to
    twenty, each of two rows on average.
    """
    cells = {str(name): frame.iloc[:, i].tolist() for i, name in enumerate(frame.columns)}
    lengths = {name: _mean_length(column) for name, column in cells.items()}
    worded = [name for name in lengths if lengths[name] > 0]
    named = [name for name in worded if _folded(name) in TEXT_NAMES]
    texts = [max(named or worded, key=lengths.__getitem__)] if worded else []
    return texts, _guess_label({name: column for name, column in cells.items() if name not in texts})


def _mean_length(cells: Sequence[object]) -> float:
    return sum(len(cell.strip()) for cell in cells if isinstance(cell, str)) / max(len(cells), 1)


def _guess_label(cells: dict[str, list[object]]) -> str | None:
    found = {name: len({label_key(cell) for cell in column} - {None}) for name, column in cells.items()}
    named = [name for name, n in found.items() if _folded(name) in LABEL_NAMES and 2 <= n <= MAX_CLASSES]
    if named:
        return min(named, key=lambda name: LABEL_NAMES.index(_folded(name)))
    few = [name for name, n in found.items() if 2 <= n <= min(_FEW_CLASSES, len(cells[name]) // 2)]
    return min(few, key=found.__getitem__) if few else None


def _folded(name: str) -> str:
    return name.strip().casefold()


def distinct_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names that no two columns share, and sentences on what was changed: all equal ones get a number."""
    filled = [name.strip() or f"column {place}" for place, name in enumerate(names, 1)]
    counts, seen, taken = Counter(filled), Counter(), set(filled)
    distinct = []
    for name in filled:
        if counts[name] > 1:
            seen[name] += 1
            while (numbered := f"{name} ({seen[name]})") in taken:
                seen[name] += 1
            name = numbered
        distinct.append(name)
    unnamed = [f"{name!r}" for old, name in zip(names, distinct, strict=True) if not old.strip()]
    said = [f"a column without a name is called {name}" for name in unnamed]
    said += [f"{n} columns called {name!r} are numbered" for name, n in counts.items() if n > 1]
    return distinct, said
