"""Whether evidence tells what an answer rests on: the answer while words are taken away in the order of the evidence.

Deletion and insertion curves (arXiv:1806.07421) over the words that were read. Taking the strongest words away first should
bring the probability down sooner than taking them in any random order, and leaving them to the last should keep it up longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from core.artifact import Reader
from core.inspection.subject import Subject, subject
from core.records import Evidence, Faithfulness
from core.statistics import softmax

STEPS = 10
RANDOM_ORDERS = 8
SEED = 0
"""Of the random orders."""


@dataclass(frozen=True, kw_only=True)
class Areas:
    """Areas under the curves of one method, from 0 to 1.

    Inserting words in one order is deleting them in the reverse one, seen from its end: random orders have the same areas
    either way.
    """

    deletion: float
    """Small where the evidence is faithful."""
    insertion: float
    """Large where it is."""
    random: Float[np.ndarray, "orders"]
    """Of each random order."""

    @property
    def random_low(self) -> float:
        """The smallest of the random orders."""
        return float(self.random.min())

    @property
    def random_high(self) -> float:
        """The largest of them."""
        return float(self.random.max())

    @property
    def faithful(self) -> bool:
        """Whether it is better than every random order, in deletion and in insertion."""
        return self.deletion < self.random_low and self.insertion > self.random_high

    @property
    def verdict(self) -> str:
        """The same in words, of either; where every order does the same, as with one word, there is nothing to tell."""
        if np.allclose(self.random, self.deletion, atol=1e-6) and np.isclose(self.insertion, self.deletion, atol=1e-6):
            return "cannot be told: every order does the same"
        return verdict(deletion=self.deletion < self.random_low, insertion=self.insertion > self.random_high)


def verdict(*, deletion: bool, insertion: bool) -> str:
    """What to say of evidence that is better than random orders in deletion, in insertion, in both or in neither."""
    if deletion and insertion:
        return "better than random"
    if deletion or insertion:
        return f"better than random in {'deletion' if deletion else 'insertion'} alone"
    return "no better than random"


def faithfulness(model: Reader, found: Evidence, *, remove: bool = False) -> Faithfulness:
    """The curves of every method of `found`, and of `RANDOM_ORDERS` random orders.

    Words go in `STEPS` equal steps. A mask stands in their places; with `remove` they are cut out, as if never typed.
    """
    asked = subject(model, found.text)
    orders = {name: asked.read[np.argsort(-one.values[asked.read], kind="stable")] for name, one in found.found.items()}
    rng = np.random.default_rng(SEED)
    random = [rng.permutation(asked.read) for _ in range(RANDOM_ORDERS)]
    counts = np.unique(np.rint(np.linspace(0, len(asked.read), STEPS + 1)).astype(int))
    backwards = [order[::-1] for order in orders.values()]
    curves = _curves(asked, [*orders.values(), *backwards, *random], counts, remove)
    n = len(orders)
    return Faithfulness(
        shares=counts / len(asked.read),
        deletion=dict(zip(orders, curves[:n], strict=True)),
        reversed=dict(zip(orders, curves[n : 2 * n], strict=True)),
        random=curves[2 * n :],
        removed=remove,
    )


def areas(found: Faithfulness, method: str) -> Areas:
    """The areas of one of its methods."""
    return Areas(
        deletion=float(np.trapezoid(found.deletion[method], found.shares)),
        insertion=float(np.trapezoid(found.reversed[method], found.shares)),
        random=np.trapezoid(found.random, found.shares, axis=1),
    )


def _curves(
    asked: Subject, orders: Sequence[Int[np.ndarray, "W"]], counts: Int[np.ndarray, "S"], remove: bool
) -> Float[np.ndarray, "orders S"]:
    """All variants are scored together; those without a word and without any are the same in every order."""
    ends = [asked.ids, asked.without(asked.read, remove=remove)]
    between = [asked.without(order[:count], remove=remove) for order in orders for count in counts[1:-1]]
    scored = softmax(asked.logits(ends + between))[:, asked.target]
    inner = scored[2:].reshape(len(orders), -1)
    whole, nothing = (np.full((len(orders), 1), end) for end in scored[:2])
    return np.concatenate([whole, inner, nothing], axis=1)
