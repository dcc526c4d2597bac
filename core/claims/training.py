"""Claims about how training goes: by three seeds, at a scale that each of them states."""

from collections.abc import Mapping

from core.claims.accuracy import ABLATED, BASE, TRAINED
from core.claims.claim import ENOUGH_SEEDS, Claim, Measured, Read, Verdict, fails, holds, not_shown, only_when
from core.claims.figures import Figures
from core.claims.lookup import lost
from core.claims.rules import at_all, if_learned, number, of_all, too_few
from core.recorded import Table

UNSCALED = "loss without the scale, points"
FAILED = "scale-off: trainings that failed"


def unscaled(tables: Mapping[str, Table]) -> Figures:
    """Against 1/sqrt(d_head)."""
    return lost(tables, "scale-off", UNSCALED)


def scale_is_needed(figures: Figures) -> Verdict:
    """Holds if every training without the scale fails, or accuracy is shown to be lower by it; fails if none of three does
    and accuracy is not shown to be; not shown with fewer trainings, or where some of them fail. That sqrt(d_model) stalls
    later, nothing here is long enough to show."""
    failed, finished = int(number(figures, FAILED)), int(number(figures, "seeds"))
    said = f"{failed} of {failed + finished} trainings without the scale became infinite or not a number"
    if failed + finished < ENOUGH_SEEDS:
        return not_shown(f"{said}, and {ENOUGH_SEEDS} trainings are needed")
    if finished < ENOUGH_SEEDS:
        return not_shown(said) if finished else holds(said)
    verdict = at_all(figures, UNSCALED)
    told = f"{said}; {verdict.why}; no training here is long enough to show a stall by sqrt(d_model)"
    return holds(told) if verdict.outcome == "holds here" else fails(told)


D_HEADS = (16, 64, 256)
SATURATED, SPREAD = 0.8, 0.3
"""The largest of 64 weights: from the first on one key has nearly all, up to the second none has."""


def saturates(figures: Figures) -> Verdict:
    """Holds if the variance of q.k is d_head within 10% at each size, and the largest of 64 weights at size 256 is above 0.8
    without the scale and below 0.3 with it; "only when" the variance is meant, if that alone holds; else fails."""
    variances = {size: number(figures, f"d_head {size}: variance over d_head") for size in D_HEADS}
    largest = {name: number(figures, f"d_head 256, {name}: largest weight") for name in ("scaled", "not scaled")}
    every = ", ".join(f"{value:.2f} d_head at {size}" for size, value in variances.items())
    said = (
        f"the variance is {every}; of 64 keys the largest weight is {largest['not scaled']:.2f} without the scale and "
        f"{largest['scaled']:.2f} with it at d_head 256"
    )
    if not all(abs(value - 1) <= 0.1 for value in variances.values()):
        return fails(said)
    saturated = largest["not scaled"] > SATURATED and largest["scaled"] < SPREAD
    return holds(said) if saturated else only_when(f"the variance is meant: {said}")


SHAKE = "more change from step to step without, nats"
CALM = 0.02
"""Nats of a loss within which trainings are alike."""


def shakes(figures: Figures) -> Verdict:
    """Holds if the loss is shown to change more from step to step without warm-up in the first 100 steps; fails if the interval
    ends below 0.02 nats; else not shown."""
    return at_all(figures, SHAKE, CALM, "nats")


HIGHER = "higher loss without, {} layers, nats"


def residuals_are_needed(figures: Figures) -> Verdict:
    """Holds if the loss at the end is shown to be higher without residual sums in 2 layers and in 12; "only when" there are as
    many layers as where it is; fails if it is higher in neither by 0.02 nats; else not shown."""
    return of_all({f"{n} layers": at_all(figures, HIGHER.format(n), CALM, "nats") for n in (2, 12)})


LOWER = "lower loss of pre, {} layers, nats"


def pre_is_stabler(figures: Figures) -> Verdict:
    """Asks for the loss at the end with 12 layers: holds if it is shown to be lower with pre-norm, and by more than with 2;
    fails if its interval ends below 0.02 nats; else not shown."""
    deep = at_all(figures, LOWER.format(12), CALM, "nats")
    shallow, value = (number(figures, LOWER.format(n)) for n in (2, 12))
    said = f"{deep.why}; with 2 layers {shallow:+.3f}"
    return not_shown(said) if deep.outcome == "holds here" and value <= shallow else Verdict(deep.outcome, said)


TOGETHER = "more of it with warm-up than without, nats"


def beta_goes_with_warm_up(figures: Figures) -> Verdict:
    """Holds if what beta2 of 0.98 gains over 0.999 is shown to be more with warm-up than without; fails if the interval of
    that ends below 0.02 nats; else not shown."""
    return at_all(figures, TOGETHER, CALM, "nats")


SMOOTHED = "gain of label smoothing, points"


def smoothed(tables: Mapping[str, Table]) -> Figures:
    """Accuracy with label smoothing of 0.1 minus that without."""
    worse = lost(tables, "label-smoothing", "loss, points")
    if "loss, points" not in worse:
        return worse
    value, low, high = (number(worse, f"loss, points{end}") for end in ("", ", from", ", to"))
    kept = {name: figure for name, figure in worse.items() if not name.startswith("loss, points")}
    return kept | {SMOOTHED: -value, f"{SMOOTHED}, from": -high, f"{SMOOTHED}, to": -low}


def smoothing_helps(figures: Figures) -> Verdict:
    """Holds if accuracy with label smoothing is shown to be higher; fails if the interval of its gain ends below a point; else
    not shown, nor where the base is right in less than 70%."""
    return if_learned(figures, at_all(figures, SMOOTHED), BASE)


BEST = "d_head {}: best rate of each seed"
LEARNED = 0.65
"""Nats of a validation loss above which a network does little more than guess."""


def wide_heads_slower(figures: Figures) -> Verdict:
    """Holds if in each of three seeds the best learning rate with heads of 128 is lower than with heads of 16; fails if it is
    in none; else not shown, nor where no rate brings the validation loss below 0.65 nats, of which guessing has 0.69."""
    if (few := too_few(figures)) is not None:
        return few
    lowest = {size: min(number(figures, name) for name in figures if name.startswith(f"d_head {size}, rate"))
              for size in (16, 128)}  # fmt: skip
    if max(lowest.values()) > LEARNED:
        return not_shown(
            f"the networks have learned too little to tell: {lowest[16]:.3f} nats with heads of 16 and {lowest[128]:.3f} with "
            "heads of 128 at their best rates"
        )
    small, large = (list(map(float, str(figures[BEST.format(size)]).split(", "))) for size in (16, 128))
    lower = [b < a for a, b in zip(small, large, strict=True)]
    said = f"best with heads of 16: {figures[BEST.format(16)]}; with heads of 128: {figures[BEST.format(128)]}"
    return holds(said) if all(lower) else not_shown(said) if any(lower) else fails(said)


KEPT = "gain of the fixed table, points"
MOVED = "moved, % of its norm"


def table_drifts(figures: Figures) -> Verdict:
    """Holds if a trained table moves by 1% of its norm or more and accuracy is shown to be lower with it; "only when" the
    drift alone is meant, if accuracy is not shown to be; fails if it moves less."""
    if (few := too_few(figures)) is not None:
        return few
    moved = number(figures, MOVED)
    cost = at_all(figures, KEPT)
    said = f"it moved by {moved:.1f}% of its norm; {cost.why}"
    if moved < 1:
        return fails(said)
    return holds(said) if cost.outcome == "holds here" else only_when(f"the drift alone is meant, and no cost of it: {said}")


CLAIMS: tuple[Claim, ...] = (
    Read(
        number=25, name="scale-or-diverge", theme="training", source="A, B, D",
        told="Without 1/sqrt(d_k) training at 256 diverges; divided by sqrt(d_model) it stalls after thousands of steps (D).",
        question="What becomes of trainings without the scale?",
        method="The encoder of 256 numbers and 8 heads is trained with the scale and without, the same seeds.",
        verdict=scale_is_needed, experiment=unscaled, **ABLATED,
    ),
    Measured(
        number=26, name="softmax-saturates", theme="training", source="D",
        told="The variance of q.k is d_k, and the softmax saturates.",
        question="How large are products of random queries and keys, and what does the softmax make of them?",
        method="Standard normal queries and keys are scored with the scale and without.",
        verdict=saturates, experiment="core.claims.experiments.masks:variance", seconds=1,
        scale="d_head 16, 64 and 256, 500 queries, 64 keys in the softmax, one seed",
    ),
    Measured(
        number=27, name="warm-up-calms", theme="training", source="A",
        told="Without warm-up the first hundreds of steps shake.",
        question="How far does the loss jump from step to step?",
        method="A post-norm encoder of 3 layers is trained with a warm-up of 10% and without, three seeds.",
        verdict=shakes, experiment=f"{TRAINED}:warm_up", seconds=35,
        scale="3 layers of 64, 2,125 training reviews of IMDB, up to 64 tokens, 2 epochs of batches of 16, 3 seeds, first 100 "
        "steps",
    ),
    Measured(
        number=28, name="residuals-needed", theme="training", source="A, B",
        told="Without residuals the loss oscillates (A), and 12 layers need them (B).",
        question="What can networks of 2 and 12 layers fit with residual sums and without?",
        method="Post-norm encoders are trained with either, three seeds, and the loss of the last steps is taken.",
        verdict=residuals_are_needed, experiment=f"{TRAINED}:residual", seconds=70,
        scale="layers of 32, 1,020 training reviews of IMDB, up to 48 tokens, 4 epochs of batches of 16, 3 seeds",
    ),
    Measured(
        number=29, name="pre-norm-stabler", theme="training", source="B, D",
        told="Pre-norm is stabler than post-norm as depth grows.",
        question="What can networks of 2 and 12 layers fit with either?",
        method="Encoders are trained with layer norm before and after each sublayer, three seeds, and the loss of the last "
        "steps is taken.",
        verdict=pre_is_stabler, experiment=f"{TRAINED}:norms", seconds=80,
        scale="layers of 32, 1,020 training reviews of IMDB, up to 48 tokens, 4 epochs of batches of 16, 3 seeds",
    ),
    Measured(
        number=30, name="beta2-with-warm-up", theme="training", source="B", told="A beta2 of 0.98 goes with warm-up.",
        question="Does beta2 of 0.98 help more where there is a warm-up?",
        method="The networks of warm-up-calms are trained with beta2 of 0.98 and 0.999, with warm-up and without.",
        verdict=beta_goes_with_warm_up, experiment=f"{TRAINED}:second_beta", seconds=70,
        scale="3 layers of 64, 2,125 training reviews of IMDB, up to 64 tokens, 2 epochs of batches of 16, 3 seeds",
    ),
    Read(
        number=31, name="smoothing-generalises", theme="training", source="B", told="Label smoothing generalises better.",
        question="What does label smoothing of 0.1 gain on test reviews?",
        method="The encoder is trained with label smoothing and without, the same seeds.",
        verdict=smoothing_helps, experiment=smoothed, **ABLATED,
    ),
    Measured(
        number=32, name="wide-heads-slower", theme="training", source="C",
        told="d_k above 64 wants a smaller learning rate.",
        question="Which of three learning rates is best with heads of 16 and with heads of 128?",
        method="An encoder of 128 numbers is trained with 8 heads and with 1, at three rates, three seeds; the best rate has "
        "the lowest validation loss.",
        verdict=wide_heads_slower, experiment=f"{TRAINED}:wide_heads", seconds=30,
        scale="1 layer of 128, 680 training reviews of IMDB, up to 48 tokens, 3 epochs of batches of 16, 3 seeds",
    ),
    Measured(
        number=33, name="table-drifts", theme="training", source="B",
        told="A position table that is kept as a parameter drifts.",
        question="How far does it move, and what does that cost?",
        method="An encoder is trained with sines as a parameter and as a fixed table, three seeds.",
        verdict=table_drifts, experiment=f"{TRAINED}:trained_table", seconds=60,
        scale="1 layer of 64, 2,040 training reviews of IMDB, up to 128 tokens, 3 epochs, 3 seeds, 1,200 test reviews",
    ),
)  # fmt: skip
