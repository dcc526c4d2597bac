"""What explains a model's answers, looked for once and kept: what a person typed for that session, the rest for all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from core.catalog import EVIDENCE
from core.records import Evidence, Faithfulness
from ui import loaders

if TYPE_CHECKING:
    from core.inspection.checklist import Checked
    from core.inspection.deletions import Deletions
    from core.inspection.edits import Weighed
    from core.inspection.heads import How, Importance
    from core.inspection.neighbours import Space

FIRST_EVIDENCE = "occlusion"
"""Shown while the rest is looked for: it is of the answer itself, and every model has it."""
MOST_KEPT = 16
"""Of each kind of explanation, kept for a session."""
MOST_SPACES = 2
"""Models whose reviews are kept as vectors, for all viewers: each takes 256 MiB at most, a shipped one 22 MB."""

T = TypeVar("T")


def importance(name: str, n: int, how: How, *, ask: bool) -> Importance | None:
    """What each head does for `n` test reviews, spread evenly; where this session has not asked before, None unless `ask`.

    ValueError if the reviews cannot be found, and for a network without heads.
    """
    return _kept("importance", (*loaders.model_key(name), n, how), lambda: _importance(name, n, how), ask=ask)


def _importance(name: str, n: int, how: How) -> Importance:
    opened, sample = loaders.model(name), loaders.splits(name).test.spread(n)
    from core.inspection.heads import importance

    passes = 1 + opened.network.config.num_hidden_layers * opened.network.config.num_attention_heads
    said = f"Asking {len(sample):,} reviews, once with all heads and once without each…"
    with _progress(said, said) as heard:
        return importance(opened, sample.texts, sample.labels, how, lambda n: heard(n, passes * len(sample)))


def evidence(name: str, text: str) -> Evidence:
    """What that model's answer for `text` rests on, by every method that applies; ValueError as from `loaders.reading`."""
    return _asked("evidence", _key(name, text), lambda: _evidence(name, text))


def has_evidence(name: str, text: str) -> bool:
    """Whether this session has it already."""
    return _key(name, text) in _known("evidence")


def first_evidence(name: str, text: str) -> Evidence:
    """The same by `FIRST_EVIDENCE` alone, which is there sooner."""
    return _asked("first_evidence", _key(name, text), lambda: _first_evidence(name, text))


def _first_evidence(name: str, text: str) -> Evidence:
    opened = loaders.model(name)
    with loaders.importing:
        from core.inspection.evidence import evidence
    with st.spinner(f"Looking for evidence: {EVIDENCE[FIRST_EVIDENCE].title.lower()} first…"):
        return evidence(opened, text, [FIRST_EVIDENCE])


def _evidence(name: str, text: str) -> Evidence:
    opened, first = loaders.model(name), first_evidence(name, text)
    from core.inspection.evidence import applicable, evidence

    methods = applicable(opened)
    with _progress("", "{done} of {total} methods are there") as heard:
        heard(1, len(methods))
        missing = [method for method in methods if method != FIRST_EVIDENCE]
        others = evidence(opened, text, missing, lambda method: heard(1, len(methods)))
    found = first.found | others.found
    return replace(others, found={method: found[method] for method in methods})


def weights(name: str, text: str) -> Evidence:
    """What each word of `text` adds to the answer of the linear model of that name."""
    opened = loaders.model(name)
    from core.inspection.evidence import evidence

    return evidence(opened, text, ["weights"])


def faithfulness(name: str, text: str, *, remove: bool, ask: bool) -> Faithfulness | None:
    """Whether `evidence` tells what the answer rests on; where this session has not asked before, None unless `ask`."""
    return _kept("faithfulness", (*_key(name, text), remove), lambda: _faithfulness(name, text, remove), ask=ask)


def _faithfulness(name: str, text: str, remove: bool) -> Faithfulness:
    from core.inspection.faithfulness import faithfulness

    with st.spinner("Taking words away, in the order of each method and in random ones…"):
        return faithfulness(loaders.model(name), evidence(name, text), remove=remove)


def weighed(name: str, text: str, label: str | None = None) -> Weighed:
    """What each word of `text` speaks for a class in that model, by default the predicted one.

    ValueError as from `loaders.reading`, and if the model does not know the class.
    """
    return _asked("weighed", (*_key(name, text), label), lambda: _weighed(name, text, label))


def _weighed(name: str, text: str, label: str | None) -> Weighed:
    opened = loaders.model(name)
    from core.inspection.occlusion import weighed

    with st.spinner("Hiding each word in turn…"):
        return weighed(opened, text, label)


def deletions(name: str, text: str, *, remove: bool) -> Deletions:
    """The least words without which that model's answer for `text` is another; ValueError as from `loaders.reading`."""
    return _asked("deletions", (*_key(name, text), remove), lambda: _deletions(name, text, remove))


def _deletions(name: str, text: str, remove: bool) -> Deletions:
    opened = loaders.model(name)
    from core.inspection.deletions import least_deletions
    from core.inspection.subject import subject

    with st.spinner("Taking words away until the answer turns…"):
        return least_deletions(subject(opened, text), remove=remove)


def checked(name: str, text: str) -> list[Checked]:
    """What that model answers for `text` with small changes; ValueError as from `loaders.reading`."""
    return _asked("checked", _key(name, text), lambda: _checked(name, text))


def _checked(name: str, text: str) -> list[Checked]:
    opened = loaders.model(name)
    from core.inspection.checklist import check

    with st.spinner("Asking for the changed reviews…"):
        return check(opened, text)


def space(name: str, most: int | None, *, ask: bool) -> Space | None:
    """Where that model sees the reviews of its training, all or `most` of them; where no session has asked, None unless `ask`.

    The vectors of `MOST_SPACES` models are kept. ValueError for a model without, and if the reviews cannot be found.
    """
    opened = loaders.model(name)
    from core.inspection.neighbours import why_not

    if (reason := why_not(opened)) is not None:
        raise ValueError(reason)
    return _made(_spaces(), MOST_SPACES, (*loaders.model_key(name), most), lambda: _space(name, most), ask=ask)


def _space(name: str, most: int | None) -> Space:
    from core.inspection.neighbours import space

    trained_on = loaders.splits(name)
    begun, going = "Tokenising reviews of the training…", "Read {done:,} of {total:,} reviews of the training"
    with _progress(begun, going) as heard:
        return space(loaders.model(name), trained_on, most, heard)


@contextmanager
def _progress(begun: str, going: str) -> Iterator[Callable[[int, int], None]]:
    """A bar, gone in the end, that is told how many more are done, and of how many; `going` says it as `str.format` does."""
    done, bar = 0, st.progress(0.0, begun)

    def heard(n: int, total: int) -> None:
        nonlocal done
        done += n
        bar.progress(done / total, going.format(done=done, total=total))

    try:
        yield heard
    finally:
        bar.empty()


def _key(name: str, text: str) -> tuple[Hashable, ...]:
    return *loaders.model_key(name), loaders.digest(text)


@st.cache_resource(show_spinner=False)
def _spaces() -> dict[tuple[Hashable, ...], Space]:
    return {}


def _known(kind: str) -> dict[tuple[Hashable, ...], Any]:
    """What this session has."""
    return st.session_state.setdefault(f"kept_{kind}", {})


def _kept(kind: str, key: tuple[Hashable, ...], make: Callable[[], T], *, ask: bool) -> T | None:
    """What this session has made before under `key`, or makes now if it is to `ask`; the oldest ones go."""
    return _made(_known(kind), MOST_KEPT, key, make, ask=ask)


def _asked(kind: str, key: tuple[Hashable, ...], make: Callable[[], T]) -> T:
    """The same, made now where it has not been."""
    found = _kept(kind, key, make, ask=True)
    assert found is not None
    return found


def _made(
    known: dict[tuple[Hashable, ...], T], most: int, key: tuple[Hashable, ...], make: Callable[[], T], *, ask: bool
) -> T | None:
    """What is `known` under `key`, or is made now if it is to `ask`; of more than `most` the oldest go."""
    if ask and key not in known:
        known[key] = make()
        while len(known) > most:
            known.pop(next(iter(known)), None)  # which another session may have done meanwhile
    return known.get(key)
