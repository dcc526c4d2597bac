"""Small changes of an English text, by rules that know how it is spelled and no grammar: not, or without it; another name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

BE_OR_MODAL = "am|is|are|was|were|can|could|will|would|should|must"
DO_OR_HAVE = "do|does|did|have|has|had"
SHORT = "(?:it|that|this|there|he|she|what|who)['’]s|i['’]m|(?:you|we|they)['’]re"
NEGATIONS = tuple((re.compile(pattern, re.IGNORECASE), written) for pattern, written in (
    (rf"\b({BE_OR_MODAL}|{DO_OR_HAVE}|{SHORT})\s+not\b", r"\1"),
    (rf"\b({BE_OR_MODAL}|{DO_OR_HAVE})n['’]t\b", r"\1"),
    (r"\b(can)(?:['’]t|not)\b", r"\1"),
    (r"\b(w)on['’]t\b", r"\1ill"),
    (rf"\b({BE_OR_MODAL}|{SHORT})\b(?!\s+not\b|['’]t\b)", r"\1 not"),
))  # fmt: skip
"""What is looked for, and what is written in its place."""
NAMES = (
    ("James", "John", "Robert", "Michael", "David", "William", "Richard", "Thomas", "Charles", "Daniel", "Matthew", "Anthony",
     "Steven", "Paul", "Andrew", "Kevin", "Brian", "George", "Peter", "Tom"),
    ("Mary", "Patricia", "Jennifer", "Linda", "Elizabeth", "Susan", "Jessica", "Sarah", "Karen", "Nancy", "Lisa", "Margaret",
     "Sandra", "Emily", "Michelle", "Laura", "Anna", "Julia", "Emma", "Kate"),
)  # fmt: skip
"""First names that are no other words; each is replaced by one of its own list."""
MOST, MOST_CHARACTERS = 100, 1_000_000
"""Changes of each kind that are made of one text, and characters that they have together: each is read whole."""

Kind = Literal["negation", "name"]


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """A text with one thing changed."""

    kind: Kind
    at: int
    """Where in the text it begins, or is first."""
    before: str
    after: str
    """What stands where `before` stood: once, or everywhere for a name."""
    text: str
    """The whole changed text."""


def rewrites(text: str) -> list[Rewrite]:
    """Each place where a negation can be put in or taken out, and each known name; of each kind the first `most`."""
    return [*islice(negations(text), most(text)), *islice(names(text), most(text))]


def most(text: str) -> int:
    """Changes of each kind that are made of a text of this length."""
    return max(1, min(MOST, MOST_CHARACTERS // max(1, len(text))))


def negations(text: str) -> Iterator[Rewrite]:
    """The text with "not" after one auxiliary that had none, or with one "not" or "n't" less, for each place in order."""
    found = [(match, written) for pattern, written in NEGATIONS for match in pattern.finditer(text)]
    for match, written in sorted(found, key=lambda pair: pair[0].start()):
        after = match.expand(written)
        if match[0].isupper() and len(match[0]) > 1:
            after = after.upper()
        changed = text[: match.start()] + after + text[match.end() :]
        yield Rewrite(kind="negation", at=match.start(), before=match[0], after=after, text=changed)


def names(text: str) -> Iterator[Rewrite]:
    """The text with one name of `NAMES`, wherever it has a capital, replaced by the next of its list that is not there."""
    there = {match[0]: match.start() for match in reversed(list(re.finditer(r"\w+", text)))}
    for known in NAMES:
        for place, name in enumerate(known):
            if name not in there:
                continue
            others = known[place + 1 :] + known[:place]
            other = next((other for other in others if other not in there), others[0])
            changed = re.sub(rf"\b{name}\b", other, text)
            yield Rewrite(kind="name", at=there[name], before=name, after=other, text=changed)
