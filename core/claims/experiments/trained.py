"""Experiments that train: small networks, the same seeds for each variant, and what their difference comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log

import numpy as np

from core.claims.experiments import shipped
from core.claims.experiments.gradients import by_distance
from core.claims.experiments.learning import (
    ON_ONE_CORE,
    RECURRENT,
    SMALL,
    HeldOut,
    Learned,
    accuracies,
    held_out,
    of_seeds,
    right,
)
from core.claims.figures import Figures, Found, interval, mean
from core.config import Architecture, DataConfig, EncoderArchitecture, RunConfig, TrainingConfig
from core.positional.sinusoidal import table

LONG = 96
"""Words beyond which the article sees a BiLSTM drop."""
LOSSES = 100
"""Steps that are called the first ones."""


def _config(model: Architecture, limit: int, training: TrainingConfig = ON_ONE_CORE, data: str = "imdb") -> RunConfig:
    return RunConfig(model=model, reviews=DataConfig(data=data, limit=limit), training=training)


# A BiLSTM beside a Transformer of as many numbers

PAIR: dict[str, Architecture] = {
    "bilstm": RECURRENT,
    "transformer": replace(SMALL, max_len=256),
}
REGULARISED = dict(dropout=0.3, embedding_dropout=0.3, token_dropout=0.2)
FEW = 600
"""Reviews of a small data set."""


def pair() -> dict[str, list[Learned]]:
    """Both networks, trained on the same reviews."""
    training = replace(ON_ONE_CORE, batch_size=16)
    return {name: of_seeds(_config(model, 5_000, training)) for name, model in PAIR.items()}


def gain() -> Figures:
    """How much better the Transformer is than the BiLSTM."""
    found = {name: accuracies(networks) for name, networks in pair().items()}
    gained = interval("gain of the transformer, points", found["bilstm"], found["transformer"])
    return _accuracies(found) | gained | shipped.gain()


def by_length() -> Figures:
    """What each loses from short reviews to long ones."""
    figures: Found = {}
    drops: dict[str, list[float]] = {}
    for name, networks in pair().items():
        short = accuracies(networks, lambda reviews: reviews.words <= LONG)
        long = accuracies(networks, lambda reviews: reviews.words > LONG)
        drops[name] = [before - after for before, after in zip(short, long, strict=True)]
        figures |= {f"{name} up to {LONG} words, %": 100 * mean(short), f"{name} beyond, %": 100 * mean(long)}
    short_ones = held_out(pair()["bilstm"][0]).words <= LONG
    figures |= {f"reviews up to {LONG} words": int(short_ones.sum()), "reviews beyond": int((~short_ones).sum())}
    figures |= {f"drop of the {name}, points": 100 * mean(drop) for name, drop in drops.items()}
    return figures | interval("larger drop of the bilstm, points", drops["transformer"], drops["bilstm"])


def small_data() -> Figures:
    """A BiLSTM with much dropout against the Transformer, on few reviews."""
    training = replace(ON_ONE_CORE, epochs=5)
    models = {"bilstm": replace(RECURRENT, **REGULARISED), "transformer": PAIR["transformer"]}
    found = {name: accuracies(of_seeds(_config(model, FEW, training))) for name, model in models.items()}
    return _accuracies(found) | interval("gain of the bilstm, points", found["transformer"], found["bilstm"])


def gradients() -> Figures:
    """How much of a state's gradient reaches words at a distance, in both networks."""
    return by_distance(pair())


def _accuracies(found: dict[str, list[float]]) -> Found:
    return {f"{name}, %": 100 * mean(values) for name, values in found.items()}


# Positions, and parts that are wrong

TRAINED_AT, TESTED_AT = 128, 500


def _small(**knobs: object) -> list[Learned]:
    """The smallest network that learns enough to lose some of it, otherwise in these knobs."""
    model = replace(SMALL, max_len=TRAINED_AT, **knobs)  # type: ignore[arg-type]
    return of_seeds(_config(model, 2_400, replace(ON_ONE_CORE, batch_size=16, lr=5e-3)))


def _longer(reviews: HeldOut) -> HeldOut:
    """Those that hold more than was read in training, twice over."""
    chosen = [place for place, ids in enumerate(reviews.ids) if len(ids) > 2 * TRAINED_AT]
    return HeldOut([reviews.ids[place] for place in chosen], reviews.labels[chosen], reviews.words[chosen])


def extrapolation() -> Figures:
    """Accuracy on long reviews read up to 128 tokens, as in training, and up to 500."""
    figures: Found = {}
    for positional in ("sinusoidal", "rotary", "alibi"):
        networks = _small(positional=positional)
        read = [(right(one, _longer(held_out(one)), TRAINED_AT).mean(), right(one, _longer(held_out(one)), TESTED_AT).mean())
                for one in networks]  # fmt: skip
        short, long = ([float(pair[place]) for pair in read] for place in (0, 1))
        figures |= {f"{positional} at {TRAINED_AT}, %": 100 * mean(short), f"{positional} at {TESTED_AT}, %": 100 * mean(long)}
        figures |= interval(f"{positional}: change, points", short, long)
    figures["learned"] = _refusal(_small(positional="learned")[0])
    return figures | {"reviews": len(_longer(held_out(networks[0])).ids)}


def _refusal(one: Learned) -> str:
    try:
        right(one, _longer(held_out(one)), TESTED_AT)
    except ValueError as error:
        return f"refused: {str(error).partition(':')[0]}"
    return "read"


def learned_positions() -> Figures:
    """How far learned and sinusoidal positions are after the first epoch, and at the end."""
    found = {positional: _small(positional=positional) for positional in ("sinusoidal", "learned")}
    losses = {name: [one.epochs[0].val_loss for one in networks] for name, networks in found.items()}
    final = {name: accuracies(networks) for name, networks in found.items()}
    return (
        {f"{name}: validation loss after one epoch, nats": mean(values) for name, values in losses.items()}
        | _accuracies(final)
        | interval("lower loss of learned, nats", losses["learned"], losses["sinusoidal"], unit=1.0)
    )


def trained_table() -> Figures:
    """How far a table of positions moves that is a parameter, and what that does to accuracy."""
    fixed, wrong = _small(), _small(mistake="positions_as_parameter")
    moved = []
    for one in wrong:
        weight = one.network.get_parameter("network.positional.table.weight").detach()
        start = table(weight.shape[0], weight.shape[1], weight.device)
        moved.append(float((weight - start).norm() / start.norm()))
    found = {"fixed": accuracies(fixed), "parameter": accuracies(wrong)}
    return (
        {"moved, % of its norm": 100 * mean(moved)}
        | _accuracies(found)
        | interval("gain of the fixed table, points", found["parameter"], found["fixed"])
    )


def norm_over_text() -> Figures:
    """Accuracy with layer norm over all tokens of a text in place of each token's components."""
    found = {"each token": accuracies(_small()), "whole text": accuracies(_small(mistake="layer_norm_over_text"))}
    return _accuracies(found) | interval("loss by the whole text, points", found["whole text"], found["each token"])


# How training goes

STEEP = replace(ON_ONE_CORE, batch_size=16, lr=2e-3)
SHORT = replace(SMALL, max_len=64, n_layers=3, dropout=0.1)
WARM, COLD = ON_ONE_CORE.warmup_ratio, 0.0


def _warmed(warmup_ratio: float, beta2: float) -> list[Learned]:
    training = replace(STEEP, warmup_ratio=warmup_ratio, betas=(0.9, beta2), epochs=2)
    return of_seeds(_config(SHORT, 2_500, training))


def _shaking(one: Learned) -> float:
    """Mean distance between the losses of two steps that follow each other, of the first ones."""
    return float(np.abs(np.diff(one.losses[:LOSSES])).mean())


def warm_up() -> Figures:
    """How the loss moves in the first steps, with warm-up and without."""
    found = {"with": _warmed(WARM, 0.999), "without": _warmed(COLD, 0.999)}
    shaking = {name: list(map(_shaking, networks)) for name, networks in found.items()}
    highest = {name: [max(one.losses[:LOSSES]) for one in networks] for name, networks in found.items()}
    final = {name: [one.final_loss for one in networks] for name, networks in found.items()}
    return (
        {f"{name}: mean change from step to step, nats": mean(values) for name, values in shaking.items()}
        | {f"{name}: highest loss, nats": mean(values) for name, values in highest.items()}
        | {f"{name}: loss at the end, nats": mean(values) for name, values in final.items()}
        | interval("more change from step to step without, nats", shaking["with"], shaking["without"], unit=1.0)
    )


def second_beta() -> Figures:
    """Whether beta2 of 0.98 helps more where there is a warm-up."""
    final = {
        (warm, beta2): [one.final_loss for one in _warmed(warm, beta2)] for warm in (WARM, COLD) for beta2 in (0.999, 0.98)
    }
    named = {WARM: "with warm-up", COLD: "without"}
    gains = {warm: [a - b for a, b in zip(final[warm, 0.999], final[warm, 0.98], strict=True)] for warm in named}
    return (
        {f"{named[warm]}, beta2 {beta2}: loss at the end, nats": mean(values) for (warm, beta2), values in final.items()}
        | interval("lower loss by 0.98 with warm-up, nats", final[WARM, 0.98], final[WARM, 0.999], unit=1.0)
        | interval("more of it with warm-up than without, nats", gains[COLD], gains[WARM], unit=1.0)
    )


DEPTHS = (2, 12)
NARROW = EncoderArchitecture(vocab_size=2_000, d_model=32, n_heads=4, d_ff=64, max_len=48, dropout=0.0, embedding_dropout=0.0)


def _deep(n_layers: int, **knobs: object) -> list[Learned]:
    training = replace(STEEP, epochs=4)
    return of_seeds(_config(replace(NARROW, n_layers=n_layers, **knobs), 1_200, training))  # type: ignore[arg-type]


def _losses(networks: Sequence[Learned]) -> list[float]:
    return [one.final_loss for one in networks]


def _depths(variants: dict[str, dict[str, object]]) -> dict[str, list[float]]:
    return {f"{name}, {depth} layers": _losses(_deep(depth, **knobs)) for name, knobs in variants.items() for depth in DEPTHS}


def residual() -> Figures:
    """What networks of two depths can fit with residual sums and without."""
    variants: dict[str, dict[str, object]] = {"with": {}, "without": {"residual": False}}
    found = _depths(variants)
    rough = {name: list(map(_shaking, _deep(DEPTHS[0], **knobs))) for name, knobs in variants.items()}
    figures: Found = {f"{name}: loss at the end, nats": mean(values) for name, values in found.items()}
    figures |= {f"{name}: mean change from step to step, nats": mean(values) for name, values in rough.items()}
    for depth in DEPTHS:
        figures |= interval(
            f"higher loss without, {depth} layers, nats", found[f"with, {depth} layers"], found[f"without, {depth} layers"], 1.0
        )
    return figures


def norms() -> Figures:
    """What networks of two depths can fit with layer norm before each sublayer and after it."""
    found = _depths({"post": {}, "pre": {"norm": "pre"}})
    figures = {f"{name}: loss at the end, nats": mean(values) for name, values in found.items()}
    for depth in DEPTHS:
        figures |= interval(
            f"lower loss of pre, {depth} layers, nats", found[f"pre, {depth} layers"], found[f"post, {depth} layers"], 1.0
        )
    return figures


RATES = (1e-3, 4e-3, 1.6e-2)
HEADS = {16: 8, 128: 1}
"""Heads of a network 128 wide, by the size of each."""


def wide_heads() -> Figures:
    """Which learning rate fits best with small heads and with one large one."""
    figures: Found = {}
    for d_head, n_heads in HEADS.items():
        model = replace(NARROW, d_model=128, n_heads=n_heads, n_layers=1, d_ff=128)
        found = {lr: _lowest(of_seeds(_config(model, 800, replace(STEEP, lr=lr)))) for lr in RATES}
        figures |= {f"d_head {d_head}, rate {lr:g}: lowest validation loss, nats": mean(values) for lr, values in found.items()}
        best = [min(pairs, key=lambda pair: pair[1])[0] for pairs in zip(*_rated(found), strict=True)]
        figures |= {f"d_head {d_head}: best rate of each seed": ", ".join(f"{lr:g}" for lr in best), "seeds": len(best)}
    return figures


def _lowest(networks: Sequence[Learned]) -> list[float]:
    """Validation loss of the best epoch of each; of one that left the finite numbers in its first, as of chance."""
    return [min((epoch.val_loss for epoch in one.epochs), default=log(2)) for one in networks]


def _rated(found: Mapping[float, Sequence[float]]) -> list[list[tuple[float, float]]]:
    """Each figure with its rate, a list for each rate."""
    return [[(lr, value) for value in values] for lr, values in found.items()]
