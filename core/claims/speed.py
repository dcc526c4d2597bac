"""Claims about speed: read from recorded benchmarks, of a CPU and, once one has been measured, of a GPU."""

from collections.abc import Mapping

from core.claims.claim import Claim, Measured, Read, Verdict, fails, holds, not_shown, only_when
from core.claims.figures import Figures
from core.claims.lookup import cell, on_devices, ratio
from core.claims.rules import DEVICES, NO_GPU, at_least, known, number, on_each_device
from core.measure.others import MOST
from core.measure.tables import TIME
from core.recorded import Table, shown

MEASURED_BY = "python -m benchmarks.cpu"
EPOCH, LATENCY = "one epoch", "latency of a batch"
TRAINING = "transformer's rate over the BiLSTM's"
BATCH = "BiLSTM's latency over the transformer's"


def _article_a(tables: Mapping[str, Table], name: str, quantity: str) -> Figures:
    """What the BiLSTM takes over what the Transformer takes."""

    def of(table: Table) -> float | None:
        both = [cell(table, f"{network}, here", {"quantity": quantity}) for network in ("BiLSTM", "Transformer")]
        return ratio(*both)

    return on_devices(tables, name, of)


def epochs(tables: Mapping[str, Table]) -> Figures:
    """Of article A's pair."""
    return _article_a(tables, TRAINING, EPOCH)


def faster_epochs(figures: Figures) -> Verdict:
    """Holds where the Transformer trains at least 3.5 times as fast as the BiLSTM, within a quarter, and fails elsewhere; "only
    when" it runs on a device, if it is so on that one and not on another. Not shown where nothing was measured."""
    return on_each_device(figures, TRAINING, at_least(3.5, "the Transformer trains {} times as fast"))


def latencies(tables: Mapping[str, Table]) -> Figures:
    """Of article A's pair."""
    return _article_a(tables, BATCH, LATENCY)


def lower_latency(figures: Figures) -> Verdict:
    """Holds where the Transformer answers a batch at least 1.9 times as fast, within a quarter, and fails elsewhere; "only
    when" it runs on a device, if it is so on that one and not on another. Not shown where nothing was measured."""
    return on_each_device(figures, BATCH, at_least(1.9, "the Transformer answers {} times as fast"))


def rates(tables: Mapping[str, Table]) -> Figures:
    """Of training on real reviews, this lab's networks."""

    def of(table: Table) -> float | None:
        return ratio(*(cell(table, "median", {"contestant": f"{name}, this lab"}) for name in ("encoder", "bilstm")))

    return on_devices(tables, TRAINING, of)


def four_times(figures: Figures) -> Verdict:
    """Holds where the Transformer trains at least 4 times as fast as the LSTM, within a quarter, and fails elsewhere; "only
    when" it runs on a device, if it is so on that one and not on another. Not shown where nothing was measured. The article
    tells it of translation, here it is asked of a classifier."""
    return on_each_device(figures, TRAINING, at_least(4.0, "the Transformer trains {} times as fast"))


SHORT, LONG = 128, 512
SPEED_UP = "eager's time over sdpa's at {} tokens"
PAYS, NEEDLESS = 1.2, 1.1
"""A gain of so much pays, and one of less than so much is none."""


def by_length(tables: Mapping[str, Table]) -> Figures:
    """Of one encoder layer, forward and backward."""
    figures = {}
    for length in (SHORT, 256, LONG, 1024):
        figures |= on_devices(tables, SPEED_UP.format(length), lambda table, length=length: _speed_up(table, length))
    return figures


def _speed_up(table: Table, length: int) -> float | None:
    """None where others used so much of the machine that a time says nothing of the kernel."""
    cells = [{"kernel": name, "what": "backward", "length": length} for name in ("eager", "sdpa")]
    if any((cell(table, "others used", where) or 0.0) > 100 * MOST for where in cells):
        return None
    return ratio(*(cell(table, "time", where) for where in cells))


def flash_pays(figures: Figures) -> Verdict:
    """Holds where flash attention gains less than 10% at 128 tokens and at least 20% at 512; fails where it gains at 128
    already or not yet at 512; "only when" the device is the right one, if they differ. Not shown without both figures of
    one device."""
    found = []
    for device, where in DEVICES.items():
        names = [f"{SPEED_UP.format(length)}, {device}" for length in (SHORT, LONG)]
        if all(known(figures, name) for name in names):
            short, long = (number(figures, name) for name in names)
            said = f"{shown(short)} times as fast at {SHORT} tokens and {shown(long)} times at {LONG} on {where}"
            found.append(holds(said) if short < NEEDLESS and long >= PAYS else fails(said))
    if not found:
        return not_shown(f"no device was measured at both lengths; {NO_GPU}")
    whys = "; ".join(verdict.why for verdict in found)
    if len({verdict.outcome for verdict in found}) > 1:
        return only_when(f"the device is the right one: {whys}")
    missing = "" if any(name.endswith("cuda") and known(figures, name) for name in figures) else f"; {NO_GPU}"
    return Verdict(found[0].outcome, whys + missing)


CACHED = "time without a cache over time with it, prompt of {} tokens"
TOLD_OF_CACHE = 2.8
PROMPTS = (8, 64, 256, 512)


def caches(tables: Mapping[str, Table]) -> Figures:
    """Of a decoder that adds 64 tokens to one prompt."""
    figures = {}
    for prompt in PROMPTS:
        figures |= on_devices(tables, CACHED.format(prompt), lambda table, prompt=prompt: _cached(table, prompt))
    return figures | {"classifier: tokens for which a cache has keys and values": 0}


def _cached(table: Table, prompt: int) -> float | None:
    return cell(table, "time without over it, median", {"prompt": prompt, "cache": "with"})


def cache_helps(figures: Figures) -> Verdict:
    """A classifier reads each token once, so that a cache is never read and the claim cannot hold of it; "only when" a decoder
    continues a long prompt, from the one on at which the cache gains 2.8 times; fails if none does. Not shown where nothing
    was measured."""
    gains = {prompt: value for prompt in PROMPTS for device in DEVICES
             if known(figures, name := f"{CACHED.format(prompt)}, {device}") and (value := number(figures, name))}  # fmt: skip
    if not gains:
        return not_shown("nothing has been measured")
    enough = [prompt for prompt, gain in gains.items() if gain >= TOLD_OF_CACHE]
    every = ", ".join(f"{shown(gain)} at {prompt}" for prompt, gain in gains.items())
    if not enough:
        return fails(f"a decoder gains {every} tokens of prompt, and a classifier nothing")
    return only_when(
        f"a decoder continues a prompt of {enough[0]} tokens or more: it gains {every} tokens of prompt; a classifier reads "
        "each token once, and gains nothing"
    )


AGAIN = "time with over without"
TOLD_OF_CHECKPOINTING = (1.2, 1.5)
"""A third more, give or take."""


def third_more(figures: Figures) -> Verdict:
    """Holds where checkpointing takes 1.2 to 1.5 times as long in the median of the pairs, and longer in each of them; fails
    where the median is outside; not shown where a pair took no longer."""
    value, low, high = (number(figures, name) for name in (AGAIN, "lowest", "highest"))
    said = f"{shown(value)} times the CPU time, of {figures['pairs']} pairs between {shown(low)} and {shown(high)}"
    if low <= 1:
        return not_shown(said)
    return holds(said) if TOLD_OF_CHECKPOINTING[0] <= value <= TOLD_OF_CHECKPOINTING[1] else fails(said)


CLAIMS: tuple[Claim, ...] = (
    Read(
        number=1, name="faster-epochs", theme="speed", source="A",
        told="A Transformer trains 3.5 times faster per epoch than a BiLSTM of equal size, batch and data.",
        question="How long does an epoch of 25,000 reviews take for either?",
        method="Both of article A's networks train on reviews of IMDB in batches of 64 of up to 256 tokens.",
        scale="article A's networks, batches of 64 reviews of IMDB up to 256 tokens, one run",
        verdict=faster_epochs, experiment=epochs, table="article A", command=f"{MEASURED_BY} --only article-a",
        columns=("quantity", "BiLSTM, here", "Transformer, here"),
    ),
    Read(
        number=2, name="lower-latency", theme="speed", source="A",
        told="A Transformer's latency for a batch is 1.9 times better than a BiLSTM's.",
        question="How long do 64 reviews of 256 tokens take?",
        method="Both of article A's networks read the same batch, forward alone; the median of several passes.",
        scale="article A's networks, 64 reviews of 256 tokens, float32",
        verdict=lower_latency, experiment=latencies, table="article A", command=f"{MEASURED_BY} --only article-a",
        columns=("quantity", "BiLSTM, here", "Transformer, here"),
    ),
    Read(
        number=3, name="four-times-an-lstm", theme="speed", source="C",
        told="A Transformer trains more than 4 times as fast as an LSTM (told of IWSLT14 German to English).",
        question="How many reviews a second does either train on?",
        method="Both networks train on IMDB in turns, each round in a process of its own; medians of five rounds.",
        scale="article A's networks, batches of 64 reviews of IMDB up to 256 tokens, five rounds",
        verdict=four_times, experiment=rates, table="training", columns=("contestant", "median"),
        command=f"{MEASURED_BY} --only training",
    ),
    Read(
        number=11, name="flash-from-512", theme="speed", source="D",
        told="Up to 128 tokens flash attention is needless; from 512 on it pays.",
        question="By how much is flash attention faster, at which length?",
        method="One encoder layer runs forward and backward with written-out attention and with flash attention, by length.",
        scale="8 heads of 32, batch 8, forward and backward",
        verdict=flash_pays, experiment=by_length, table=TIME, columns=("kernel", "what", "length", "time", "others used"),
        command=f"{MEASURED_BY} --only time",
    ),
    Read(
        number=12, name="cache-for-a-classifier", theme="speed", source="D",
        told="A cache of keys and values makes inference 2.8 times faster at batch 1 (told of a classifier).",
        question="What does a cache gain, and for whom?",
        method="A decoder continues one prompt with a cache and without, by the prompt's length. A classifier asks for no key "
        "or value twice, so that there is nothing to measure.",
        scale="3 layers of 256, 8 heads, 64 tokens added to one prompt, random weights",
        verdict=cache_helps, experiment=caches, table="generation",
        columns=("prompt", "cache", "time without over it, median"), command=f"{MEASURED_BY} --only generation",
    ),
    Measured(
        number=14, name="checkpointing-a-third", theme="speed", source="P",
        told="Checkpointing costs a third more time.",
        question="How much longer do forward and backward take when activations are computed again?",
        method="Four encoder layers run forward and backward with activations kept and computed again, in turns, by CPU time.",
        verdict=third_more, experiment="core.claims.experiments.timing:checkpointing", seconds=20,
        scale="4 layers of 8 heads of 32, 8 texts of 256 tokens, float32, sdpa",
    ),
)  # fmt: skip
