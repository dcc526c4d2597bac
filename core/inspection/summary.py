"""Evidence in sentences, without full stop: what an answer rests on, and whether methods agree. Typed words are data."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float

from core.catalog import EVIDENCE
from core.figures.labels import percent
from core.records import Evidence

TOLD = ("weights", "occlusion", "integrated_gradients", "gradient")
"""Methods whose words are named, the first that is there; attention alone says nothing of what speaks for a class."""
MOST_NAMED = 3
TOP = 5
"""Words whose overlap is counted."""
HALF = 0.5
"""From this share of the evidence on, an answer rests mostly on what is named."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How alike two methods order the words that were read, whatever the sign of what they find."""

    first: str
    second: str
    tau: float | None
    """Kendall's tau-b (1945): 1 for the same order, -1 for the reverse; None where a method tells no words apart."""
    overlap: int
    """Of the `n_top` strongest words of the one, so many are among those of the other."""
    n_top: int


def rests_on(found: Evidence) -> str:
    """Class, probability, and the words that speak most for it; neighbours are named as they stand in the text."""
    answer = found.prediction
    sure = f"{answer.label}, {percent(answer.probabilities[answer.label])}"
    told = next((found.found[name] for name in TOLD if name in found.found), None)
    if told is None:
        return sure
    support = np.maximum(told.values, 0)
    strongest = [int(i) for i in np.argsort(-support, kind="stable")[:MOST_NAMED] if support[i] > 0]
    if not strongest:
        return f"{sure}; no word speaks for it"
    strongest = strongest[: 1 + int(np.searchsorted(np.cumsum(support[strongest]), HALF * support.sum()))]
    mostly = support[strongest].sum() >= HALF * support.sum()
    named = _listed([f"'{phrase}'" for phrase in _phrases(found, strongest)])
    return f"{sure}; rests mostly on {named}" if mostly else f"{sure}; rests on many words, most of all on {named}"


def agreements(found: Evidence) -> list[Agreement]:
    """Of each pair of its methods."""
    read = np.array([word.read for word in found.words])
    sizes = {name: np.abs(one.values[read]) for name, one in found.found.items()}
    n_top = min(TOP, int(read.sum()))
    return [_agreement(a, b, sizes[a], sizes[b], n_top) for a, b in combinations(sizes, 2)]


def agreement(found: Evidence) -> str:
    """How far the methods agree, and which pair does least. An empty text for fewer than two."""
    told = [(pair.tau, pair) for pair in agreements(found) if pair.tau is not None]
    if not told:
        return ""
    mean, overlap = np.mean([tau for tau, _ in told]), np.mean([pair.overlap for _, pair in told])
    lowest, least = min(told, key=lambda pair: pair[0])
    how = "agree" if mean >= 0.6 else "agree in part" if mean >= 0.3 else "hardly agree"
    sentence = f"The methods {how} on which words matter: Kendall's tau is {mean:.2f} on average"
    if sum(word.read for word in found.words) > least.n_top:  # of fewer words each is among the strongest of all methods
        sentence += f", and of the {least.n_top} strongest words of one, {overlap:.1f} are among those of another"
    if len(told) == 1:
        return sentence
    first, second = (EVIDENCE[name].title.lower() for name in (least.first, least.second))
    return f"{sentence}; {first} and {second} agree least, at {lowest:.2f}"


def _agreement(a: str, b: str, x: Float[np.ndarray, "n"], y: Float[np.ndarray, "n"], n_top: int) -> Agreement:
    from scipy.stats import kendalltau  # a second to import

    told_apart = len(x) > 1 and np.ptp(x) > 0 and np.ptp(y) > 0
    top = [set(np.argsort(-sizes, kind="stable")[:n_top].tolist()) for sizes in (x, y)]
    correlated: Any = kendalltau(x, y) if told_apart else None
    tau = None if correlated is None else float(correlated.statistic)
    return Agreement(first=a, second=b, tau=tau, overlap=len(top[0] & top[1]), n_top=n_top)


def _phrases(found: Evidence, chosen: Sequence[int]) -> list[str]:
    """The chosen words as they stand in the text, those that follow one another together, the strongest first."""
    runs: list[list[int]] = []
    for i in sorted(chosen):
        if runs and i == runs[-1][-1] + 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    runs.sort(key=lambda run: min(chosen.index(i) for i in run))
    return list(dict.fromkeys(found.text[found.words[run[0]].span[0] : found.words[run[-1]].span[1]] for run in runs))


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
