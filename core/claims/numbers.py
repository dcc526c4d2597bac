"""Claims about numbers, masks and shapes: one call each, on made tensors."""

from core.claims.accuracy import TRAINED
from core.claims.claim import Claim, Measured, Verdict, fails, holds, not_shown, only_when
from core.claims.figures import Figures
from core.claims.rules import at_all, if_learned, known, number
from core.recorded import shown

EXACT = 1e-5
"""Up to which float32 results count as equal."""


def infinite_fills(figures: Figures) -> Verdict:
    """Holds if -inf spoils the gradient and -1e9 does not, whatever is left to see; "only when" nothing is left to see, if it
    does there alone; fails if it never does, or -1e9 does too."""
    bad = {(left, fill): number(figures, f"{left} to see, {fill}: not finite")
           for left in ("nothing", "one token") for fill in ("-inf", "-1e9")}  # fmt: skip
    said = (
        f"with nothing left to see, {bad['nothing', '-inf']:.0f} numbers of the gradient are not finite by -inf and "
        f"{bad['nothing', '-1e9']:.0f} by -1e9; with one token left, {bad['one token', '-inf']:.0f} and "
        f"{bad['one token', '-1e9']:.0f}; in float16 -1e9 is {figures['-1e9 in float16']}"
    )
    if bad["nothing", "-1e9"] or bad["one token", "-1e9"] or not bad["nothing", "-inf"]:
        return fails(said)
    return holds(said) if bad["one token", "-inf"] else only_when(f"a query has nothing left to see: {said}")


SIZE = "{} tokens, {}: overflows from size"


def half_overflows(figures: Figures) -> Verdict:
    """Holds if scores of standard normal queries and keys overflow at 1,024 tokens and not at 128, and do not once the scale
    comes first; "only when" queries and keys are larger, if they overflow from some size on whatever the length; else
    fails."""
    first = {length: figures.get(SIZE.format(length, "product first")) for length in (128, 1024)}
    scaled = figures.get(SIZE.format(1024, "scale first"))
    largest = number(figures, "1024 tokens: largest score at size 1")
    said = (
        f"at size 1 the largest score of 1,024 tokens is {largest:.0f}, and float16 holds 65,504; with the product first "
        f"scores overflow from size {first[128]} at 128 tokens and {first[1024]} at 1,024, with the scale first from {scaled}"
    )
    if first[1024] is None:
        return fails(said)
    if first[1024] == 1 and first[128] != 1 and scaled != 1:
        return holds(said)
    return only_when(f"queries and keys are large, whatever the length, and scaling first helps by sqrt(sqrt(d_k)): {said}")


def masked_after(figures: Figures) -> Verdict:
    """Holds if with a mask after the softmax rows sum to less than 0.99 and outputs move with padding, and neither is so with a
    mask before it; else fails."""
    total, moves = (number(figures, f"mask after softmax: {what}") for what in ("smallest sum of a row", MOVES))
    right, still = (number(figures, f"this lab: {what}") for what in ("smallest sum of a row", MOVES))
    said = (
        f"a row sums to {total:.2f}, and an output moves by {moves:.2g} with padding; with a mask before the softmax to "
        f"{right:.2f}, and by {still:.2g}"
    )
    wrong = total < 0.99 and moves > EXACT
    return holds(said) if wrong and abs(right - 1) <= EXACT and still <= EXACT else fails(said)


MOVES = "an output moves with padding by"


def mask_broadcasts(figures: Figures) -> Verdict:
    """Holds if a mask of (B, 1, 1, T) is taken and those without an axis for heads are refused; "only when" sizes differ, if
    one without is taken in silence where two sizes are equal; else fails."""
    said = "; ".join(f"{shape}: {what}" for shape, what in figures.items())
    if figures["(B, 1, 1, T)"] != "taken" or "taken" in (figures["(B, T)"], figures["(B, T, T)"]):
        return fails(said)
    if figures["(B, T, T) where B is H"] == "right":
        return holds(said)
    return only_when(f"the sizes differ; where they are equal, a mask of another shape is taken for one of heads: {said}")


def views_are_refused(figures: Figures) -> Verdict:
    """Holds if `view` is refused after `transpose` and also in projection, view, transpose, as told; "only when" it comes after
    the transpose, if it is refused there alone; else fails."""
    said = "; ".join(f"{order}: {what}" for order, what in figures.items())
    if figures["transpose, view"] != "refused" or figures["transpose, contiguous, view"] != "taken":
        return fails(said)
    if figures["projection, view, transpose"] == "refused":
        return holds(said)
    return only_when(f"view comes after transpose: {said}")


def reshape_is_wrong(figures: Figures) -> Verdict:
    """Holds if it runs and puts numbers in another place; else fails."""
    moved = number(figures, "numbers in another place, %")
    said = f"it {'runs' if figures['runs'] == 'true' else 'does not run'}, and {moved:.0f}% of the numbers are in another place"
    return holds(said) if figures["runs"] == "true" and moved > 0 else fails(said)


def flickers(figures: Figures) -> Verdict:
    """Holds if probabilities differ from pass to pass in training mode and not in evaluation mode; else fails."""
    spread, still = (
        number(figures, f"{mode}: spread of a probability, points") for mode in ("training mode", "evaluation mode")
    )
    labels = number(figures, "training mode: reviews whose label changes, %")
    said = (
        f"over {figures['passes']} passes a probability spreads by {shown(spread)} points in training mode, and the label of "
        f"{labels:.0f}% of {figures['reviews']} reviews changes; in evaluation mode by {shown(still)}"
    )
    return holds(said) if spread > EXACT and still <= EXACT else fails(said)


LOST = "loss by the whole text, points"


def norm_over_text(figures: Figures) -> Verdict:
    """Holds if it trains and accuracy is shown to be lower over three seeds; fails if the interval of the loss ends below a
    point; else not shown, nor where layer norm of each token is right in less than 70%."""
    if not known(figures, LOST):
        return not_shown("nothing was trained")
    verdict = if_learned(figures, at_all(figures, LOST), "each token, %")
    return Verdict(verdict.outcome, f"it runs; {verdict.why}")


MASKS = "core.claims.experiments.masks"

CLAIMS: tuple[Claim, ...] = (
    Measured(
        number=34, name="inf-makes-nan", theme="numbers and masks", source="D",
        told="-inf in the mask gives NaN in the backward pass, and -1e9 does not.",
        question="Which numbers of the gradient are not finite, and where?",
        method="Attention runs forward and backward with either fill, where a review has no token left to see and one.",
        verdict=infinite_fills, experiment=f"{MASKS}:fills", seconds=1, scale="2 heads of 8, 4 tokens, float32",
    ),
    Measured(
        number=35, name="fp16-overflows", theme="numbers and masks", source="D",
        told="fp16 scores overflow at T = 1,024; scale before the cast.",
        question="From which size of queries and keys on do scores overflow, and does length matter?",
        method="Random queries and keys of growing size are scored in float16, the product first and the scale first.",
        verdict=half_overflows, experiment=f"{MASKS}:overflow", seconds=2, scale="one head of 64, 128 and 1,024 tokens",
    ),
    Measured(
        number=36, name="mask-after-softmax", theme="numbers and masks", source="A, B, D",
        told="A mask after the softmax leaves padding's influence; weights no longer sum to 1.",
        question="What do rows sum to, and does the output move with padding?",
        method="Attention over 5 tokens and 3 of padding runs with either mask, and again with other keys in the padding.",
        verdict=masked_after, experiment=f"{MASKS}:masked_after", seconds=1, scale="2 heads of 16, 8 tokens, float32",
    ),
    Measured(
        number=37, name="mask-broadcasts", theme="numbers and masks", source="A",
        told="The mask's shape must broadcast over heads.",
        question="Which shapes are taken, and are some taken wrongly?",
        method="Masks of several shapes fill scores of (B, H, T, T).",
        verdict=mask_broadcasts, experiment=f"{MASKS}:mask_shapes", seconds=1, scale="B 2, H 4 and 2, T 7",
    ),
    Measured(
        number=38, name="view-after-transpose", theme="numbers and masks", source="A",
        told="`view` after `transpose` without `contiguous` raises; the projection followed by view and transpose raises too.",
        question="Which of these orders does PyTorch refuse?", method="Each order is run once.",
        verdict=views_are_refused, experiment=f"{MASKS}:views", seconds=1, scale="B 2, H 4, T 7, K 6",
    ),
    Measured(
        number=39, name="reshape-is-wrong", theme="numbers and masks", source="B",
        told="Reshaping straight to (B, H, T, d_k) runs and is wrong.",
        question="How many numbers does it put into another head or token?",
        method="Numbered vectors are cut into heads by reshape and by transpose.",
        verdict=reshape_is_wrong, experiment=f"{MASKS}:reshaped", seconds=1, scale="B 2, H 4, T 7, K 6",
    ),
    Measured(
        number=40, name="eval-forgotten", theme="numbers and masks", source="A",
        told="Forgetting eval() makes predictions flicker.",
        question="How far do probabilities of the same reviews differ from pass to pass?",
        method="The shipped encoder reads the same reviews again and again in training mode and in evaluation mode.",
        verdict=flickers, experiment=f"{MASKS}:flicker", seconds=10, scale="models/imdb-encoder (dropout 0.2), 40 test reviews",
    ),
    Measured(
        number=41, name="norm-over-text", theme="numbers and masks", source="B",
        told="Layer norm over a wrong shape runs and is worse.",
        question="What is lost by layer norm over all numbers of a text?",
        method="An encoder is trained with it and with layer norm of each token, three seeds.",
        verdict=norm_over_text, experiment=f"{TRAINED}:norm_over_text", seconds=50,
        scale="1 layer of 64, 2,040 training reviews of IMDB, up to 128 tokens, 3 epochs, 3 seeds, 1,200 test reviews",
    ),
)  # fmt: skip
