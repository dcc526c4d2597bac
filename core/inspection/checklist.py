"""Whether an answer moves with what it should move with, and with nothing else (CheckList, arXiv:2005.04118)."""

from dataclasses import dataclass

from core.artifact import Reader
from core.evaluation.scoring import score
from core.inspection.reading import encode_typed, prediction
from core.inspection.rewrites import Rewrite, rewrites
from core.records import Prediction

MOVES = 0.05
"""From this change of its probability on an answer is said to move; one that turns moves always."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A small change of a text and what becomes of the answer."""

    rewrite: Rewrite
    before: Prediction
    after: Prediction
    is_read: bool
    """Whether the model reads anything else than before: what a long text has in its middle or at its end may be cut off."""

    @property
    def change(self) -> float:
        """Of the probability of the class that the unchanged text is predicted to be of."""
        return self.after.probabilities[self.before.label] - self.before.probabilities[self.before.label]

    @property
    def flips(self) -> bool:
        """Whether the answer is another."""
        return self.after.label != self.before.label

    @property
    def moves(self) -> bool:
        """Whether it is, or is much more or less sure."""
        return self.flips or abs(self.change) >= MOVES

    @property
    def is_expected(self) -> bool:
        """A negation should move an answer, a name should not."""
        return self.moves == (self.rewrite.kind == "negation")


def check(model: Reader, text: str) -> list[Checked]:
    """Every change that `rewrites` knows of this text, none for one without English auxiliaries and names.

    ValueError as from `core.inspection.reading.encode_typed`.
    """
    changes = rewrites(text)
    encoded = [encode_typed(model, one) for one in (text, *(change.text for change in changes))]
    ids = [model.cut.ids(one.ids) for one in encoded]
    before, *after = (
        prediction(model.label_names, logits, len(one.ids), len(model.cut.kept(len(one.ids))))
        for one, logits in zip(encoded, score(model.network, ids), strict=True)
    )
    return [
        Checked(rewrite=change, before=before, after=answer, is_read=own.tolist() != ids[0].tolist())
        for change, answer, own in zip(changes, after, ids[1:], strict=True)
    ]
