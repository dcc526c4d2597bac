"""Claims about positions, and about maps of attention."""

from core.claims.accuracy import TRAINED
from core.claims.claim import Claim, Measured, Verdict, fails, holds, not_shown, only_when
from core.claims.figures import Figures
from core.claims.rules import at_all, measured, number, too_few

EXACT = 1e-3
"""Up to which codes count as equal: float32 has seven digits, and angles go to a thousand."""


def slices_stop(figures: Figures) -> Verdict:
    """Holds if the sliced table gives as many rows as are asked for; "only when" nothing is added to it, if the slice itself is
    taken and its sum with the tokens is refused; else fails."""
    asked, got = (number(figures, f"rows {what}") for what in ("asked for", "got"))
    said = f"of {asked:.0f} rows asked for, {got:.0f} come, and the sum with 200 tokens is {figures['sum with 200 tokens']}"
    if got == asked:
        return holds(said)
    return only_when(f"the slice alone is meant: {said}") if figures["sum with 200 tokens"] == "refused" else fails(said)


COLLAPSE = 5.0
"""Points of accuracy beyond which a change is called one."""
CHANGE = "{}: change, points"


def long_texts(figures: Figures) -> Verdict:
    """By three seeds: holds if accuracy with sinusoidal positions is shown to fall by 5 points or more from 128 tokens to 500,
    and with rotary and ALiBi not to; fails if the interval of sinusoidal's fall ends below 5 points; "only when" a kind of
    positions is meant for which it is so; else not shown."""
    if (few := too_few(figures)) is not None:
        return few
    found = {name: measured(figures, CHANGE.format(name)) for name in ("sinusoidal", "rotary", "alibi")}
    whys = "; ".join(why for _, _, why in found.values()) + f"; learned positions: {figures['learned']}"
    collapses = {name: high <= -COLLAPSE for name, (low, high, _) in found.items()}
    keeps = {name: low > -COLLAPSE for name, (low, high, _) in found.items()}
    if collapses["sinusoidal"]:
        kept = [name for name in ("rotary", "alibi") if keeps[name]]
        if len(kept) == 2:
            return holds(whys)
        return only_when(f"{kept[0]} positions are meant: {whys}") if kept else not_shown(whys)
    return fails(whys) if keeps["sinusoidal"] else not_shown(whys)


def is_linear(figures: Figures) -> Verdict:
    """Holds if the map that is found on the first places gives every later one within 0.001; else fails."""
    largest = max(number(figures, name) for name in figures)
    said = f"the largest error on 700 later places is {largest:.1g}"
    return holds(said) if largest <= EXACT else fails(said)


FASTER = "lower loss of learned, nats"


def learn_faster(figures: Figures) -> Verdict:
    """Holds if the validation loss after one epoch is shown to be lower with learned positions; fails if the interval of that
    ends below 0.02 nats; else not shown."""
    return at_all(figures, FASTER, 0.02, "nats")


ORDERED = ("sinusoidal", "learned", "rotary", "alibi")
BLIND, SEES = 1e-5, 1e-4
"""By less than the first, logits do not move; by more than the second, they do."""


def order_is_lost(figures: Figures) -> Verdict:
    """Holds if logits without positions do not move when words are shuffled, and do with each kind of positions; else fails."""
    moves = {name: number(figures, f"{name}: logits move by") for name in ("none", *ORDERED)}
    said = ", ".join(f"{name} {value:.1g}" for name, value in moves.items())
    said = f"logits move by: {said}"
    return holds(said) if moves["none"] < BLIND and all(moves[name] > SEES for name in ORDERED) else fails(said)


def goes_to_stop_words(figures: Figures) -> Verdict:
    """Holds if stop words, separators and punctuation receive more than half of the attention, and more than their share of
    the tokens; "only when" it is not counted by tokens, if they receive more than half and less than their share; else fails.
    Whether maps in papers are picked, no experiment can show."""
    received, share = number(figures, "attention received, %"), number(figures, "share of the tokens, %")
    said = f"they receive {received:.0f}% of the attention and are {share:.0f}% of the tokens, in {figures['reviews']} reviews"
    if received <= 50:
        return fails(said)
    return holds(said) if received > share else only_when(f"it is not counted by tokens: {said}")


def heads_differ(figures: Figures) -> Verdict:
    """Two heads are alike if a tenth of their attention or less goes elsewhere. Holds if none of a layer are; "only when" other
    pairs are meant, if some are; fails if all are."""
    alike, pairs = number(figures, "pairs alike"), number(figures, "pairs")
    said = (
        f"{number(figures, 'mean distance of two heads of a layer'):.0%} of the attention of two heads goes elsewhere, of the "
        f"most alike ({figures['of']}) {number(figures, 'smallest distance'):.0%}; {alike:.0f} of {pairs:.0f} pairs are alike"
    )
    if alike == 0:
        return holds(said)
    return fails(said) if alike == pairs else only_when(f"the other heads are meant: {said}")


MAPS = "core.claims.experiments.maps"
SHIPPED = "models/imdb-encoder (one seed), 40 test reviews of IMDB"

CLAIMS: tuple[Claim, ...] = (
    Measured(
        number=42, name="slice-beyond-max-len", theme="positions and maps", source="A",
        told="Beyond max_len, slicing the sinusoidal table does not overrun.",
        question="What does the slice give, and what becomes of the sum?",
        method="A table for 128 places is sliced to 200 and added to 200 tokens.",
        verdict=slices_stop, experiment=f"{MAPS}:sliced_table", seconds=1, scale="128 places, 200 tokens",
    ),
    Measured(
        number=43, name="trained-128-tested-500", theme="positions and maps", source="A, B, D",
        told="Trained at 128 and tested at 500 tokens, absolute positions collapse; RoPE and ALiBi do not. RoPE from 512 to "
        "1,024 costs 0.2 F1 (D).",
        question="What becomes of accuracy on long reviews when more of them is read than in training?",
        method="Encoders are trained at 128 tokens with each kind of positions, and long test reviews are read up to 128 and "
        "up to 500 tokens. From 512 to 1,024 would need a GPU.",
        verdict=long_texts, experiment=f"{TRAINED}:extrapolation", seconds=100,
        scale="1 layer of 64, 2,040 training reviews of IMDB, 3 epochs, 3 seeds, test reviews of more than 256 tokens",
    ),
    Measured(
        number=44, name="shift-is-linear", theme="positions and maps", source="B",
        told="PE(pos + k) is a linear map of PE(pos).",
        question="Does one matrix give every later place?",
        method="For each pair of components a matrix is found on the first 300 places, and held against the next 700.",
        verdict=is_linear, experiment=f"{MAPS}:linear_map", seconds=1, scale="64 components, k = 1, 5 and 50",
    ),
    Measured(
        number=45, name="learned-faster", theme="positions and maps", source="B",
        told="Learned positions converge faster in small models.",
        question="How far are learned and sinusoidal positions after one epoch?",
        method="The encoders of trained-128-tested-500 are measured after their first epoch, and at the end.",
        verdict=learn_faster, experiment=f"{TRAINED}:learned_positions", seconds=60,
        scale="1 layer of 64, 2,040 training reviews of IMDB, up to 128 tokens, 3 epochs, 3 seeds, 1,200 test reviews",
    ),
    Measured(
        number=46, name="order-without-positions", theme="positions and maps", source="B",
        told="Without positions the order of a sentence's words does not matter.",
        question="Do logits move when the words are shuffled?",
        method="Encoders of random weights with each kind of positions read texts in order and shuffled.",
        verdict=order_is_lost, experiment=f"{MAPS}:word_order", seconds=1, scale="2 layers of 32, 8 texts of 24 tokens",
    ),
    Measured(
        number=47, name="attention-to-stop-words", theme="positions and maps", source="B",
        told="Most attention goes to stop words and separators; maps in papers are picked.",
        question="What share of the attention do they receive, and what share of the tokens are they?",
        method="Attention that tokens receive is averaged over layers, heads and queries; stop words are scikit-learn's list.",
        verdict=goes_to_stop_words, experiment=f"{MAPS}:stop_words", seconds=5, scale=SHIPPED,
    ),
    Measured(
        number=48, name="heads-differ", theme="positions and maps", source="A",
        told="Each head learns another pattern.",
        question="How much of the attention of two heads of a layer goes elsewhere?",
        method="The total variation distance between the maps of each two heads of a layer is averaged over queries and "
        "reviews.",
        verdict=heads_differ, experiment=f"{MAPS}:heads_differ", seconds=5, scale=SHIPPED,
    ),
)  # fmt: skip
