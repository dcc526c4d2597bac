"""Claims about memory and size: bytes that are counted or predicted, within seconds and the same on every machine."""

from collections.abc import Mapping

from core.claims.claim import Claim, Measured, Read, Verdict, fails, holds, only_when
from core.claims.figures import Figures
from core.claims.lookup import cell, on_devices, ratio
from core.claims.rules import NEAR, about, called, number, on_each_device
from core.recorded import Table, shown

MORE = "transformer's memory over the BiLSTM's"


def _of_article_a(table: Table) -> float | None:
    where = {"quantity": "memory of a step"}
    return ratio(cell(table, "Transformer, here", where), cell(table, "BiLSTM, here", where))


def steps(tables: Mapping[str, Table]) -> Figures:
    """Of article A's pair."""
    return on_devices(tables, MORE, _of_article_a)


def naive_needs_more(figures: Figures) -> Verdict:
    """Holds where the Transformer's step takes 1.71 times the BiLSTM's memory, within a quarter, and fails elsewhere; "only
    when" it runs on a device, if it is so on that one and not on another. Not shown where nothing was measured."""
    return on_each_device(figures, MORE, about(1.71, "the Transformer takes {} times the memory"))


SAVED, LENGTHS = "training at {}, eager over sdpa", (512, 1024, 2048)
TOLD_SAVED = 7.5


def flash_saves(figures: Figures) -> Verdict:
    """Holds if attention in training takes 7.5 times less with flash at 512 tokens, within a quarter; "only when" the text is
    longer, if it does there; else fails."""
    found = {length: number(figures, SAVED.format(length)) for length in LENGTHS}
    every = ", ".join(f"{shown(value)} times less at {length:,}" for length, value in found.items())
    if abs(found[512] / TOLD_SAVED - 1) <= NEAR:
        return holds(every)
    enough = [length for length, value in found.items() if value >= TOLD_SAVED]
    return only_when(f"texts have more tokens, at the latest {enough[0]:,}: {every}") if enough else fails(every)


def _gib(figures: Figures, name: str, told: float) -> Verdict:
    value = number(figures, name)
    said = f"{shown(value)} GiB"
    return holds(said) if abs(value / told - 1) <= 0.05 else fails(said)


def scores_of_d(figures: Figures) -> Verdict:
    """Holds if the scores take 1.5 GiB, within 5%; else fails."""
    return _gib(figures, "scores, GiB", 1.5)


def layer_of_a(figures: Figures) -> Verdict:
    """Holds if what a layer keeps of its scores takes 1 GiB, within 5%; "only when" one matrix is meant, if that does and the
    layer keeps more; else fails."""
    one, kept = (number(figures, name) for name in ("one matrix of scores, GiB", "kept by a layer for backward, GiB"))
    peak = number(figures, "whole layer at its peak, GiB")
    said = f"a matrix of scores takes {shown(one)} GiB, a layer keeps {shown(kept)} and is at its peak {shown(peak)}"
    if abs(kept - 1) <= 0.05:
        return holds(said)
    return only_when(f"one matrix is meant: {said}") if abs(one - 1) <= 0.05 else fails(said)


def one_long_matrix(figures: Figures) -> Verdict:
    """Holds if the matrix takes 4 GiB in every format of numbers; "only when" in the formats in which it does; else fails."""
    found = {name.removesuffix(", GiB"): number(figures, name) for name in figures}
    every = ", ".join(f"{shown(value)} GiB at {name}" for name, value in found.items())
    fitting = [name for name, value in found.items() if abs(value / 4 - 1) <= 0.05]
    if len(fitting) == len(found):
        return holds(every)
    return only_when(f"a number takes {' or '.join(fitting)}: {every}") if fitting else fails(every)


def share(figures: Figures) -> Verdict:
    """Holds if attention's share of the peak is 30 to 40% at all lengths; "only when" the texts have a length at which it
    is; else fails."""
    found = {name.removeprefix("share at ").removesuffix(", %"): number(figures, name) for name in figures}
    every = ", ".join(f"{value:.0f}% at {length}" for length, value in found.items())
    fitting = [length for length, value in found.items() if 30 <= value <= 40]
    if len(fitting) == len(found):
        return holds(every)
    return only_when(f"texts have about {' or '.join(fitting)}: {every}") if fitting else fails(every)


HELD, MOVED = "memory held grows by length to the power of", "bytes moved grow by length to the power of"
LINEAR, SQUARE = 1.25, 1.75
"""Powers up to the first count as O(n), from the second on as O(n^2)."""


def reads(figures: Figures) -> Verdict:
    """Holds if both memory held and bytes moved grow no faster than the length and operations are eager's; "only when" memory
    held is meant, if that alone grows so; else fails."""
    held, moved = number(figures, HELD), number(figures, MOVED)
    forward, training = (number(figures, f"operations over eager's, {what}") for what in ("forward", "training"))
    said = (
        f"memory held grows by length to the power {held:.2f}, bytes moved to {moved:.2f}; operations are {shown(forward)} "
        f"times eager's forward and {shown(training)} times in training, where scores are computed again"
    )
    if held <= LINEAR and moved <= LINEAR and max(forward, training) <= 1.05:
        return holds(said)
    return only_when(f"memory that is held is meant, and not what is read: {said}") if held <= LINEAR else fails(said)


def batch_rule(figures: Figures) -> Verdict:
    """Holds if the rule is within a quarter of the largest batch predicted in each configuration; "only when" in those in which
    it is; fails if it is in none."""
    found = {name: number(figures, name) for name in figures}
    near = [name for name, value in found.items() if abs(value - 1) <= NEAR]
    low, high = min(found.values()), max(found.values())
    said = f"it allows {shown(low)} to {shown(high)} times the batch that fits, in {len(found)} configurations"
    if len(near) == len(found):
        return holds(said)
    return only_when(f"there are {'; or '.join(near)}: {said}") if near else fails(said)


TOLD_MILLIONS = {"transformer": 9.2, "bilstm": 8.6}


def parameters(figures: Figures) -> Verdict:
    """Holds if both networks have as many parameters as told, within 5%; fails if neither or one alone has."""
    found = {name: number(figures, f"{name}, million") for name in TOLD_MILLIONS}
    each = (f"the {called(name)} has {value:.2f} million (claimed: {TOLD_MILLIONS[name]})" for name, value in found.items())
    said = f"parameters: {', '.join(each)}"
    return holds(said) if all(abs(found[name] / TOLD_MILLIONS[name] - 1) <= 0.05 for name in found) else fails(said)


SIZES = "core.claims.experiments.sizes"

CLAIMS: tuple[Claim, ...] = (
    Read(
        number=4, name="naive-71-percent-more", theme="memory and size", source="A",
        told="A Transformer with naive attention needs 71% more memory than a BiLSTM.",
        question="What does a training step of either take at its peak?",
        method="A step of each of article A's networks, batch 64 of 256 tokens, in a process of its own.",
        scale="3 layers of 256 against one of 256 each way, batch 64 of 256 tokens, float32",
        verdict=naive_needs_more, experiment=steps, table="article A",
        columns=("quantity", "BiLSTM, here", "Transformer, here"),
        command="python -m benchmarks.cpu --only article-a",
    ),
    Measured(
        number=5, name="flash-saves-7.5", theme="memory and size", source="D",
        told="Flash attention saves 7.5 times attention's memory: 1.15 GB to 150 MB at batch 32, 512 tokens, 12 heads.",
        question="What does attention take with either kernel, and how does that change with length?",
        method="Attention alone runs forward, and forward and backward, and bytes alive at once are counted, q, k and v too. "
        "The ratio is that of any batch and any number of heads.",
        verdict=flash_saves, experiment=f"{SIZES}:flash_saves", seconds=5, scale="heads of 64, float32",
    ),
    Measured(
        number=6, name="scores-1.5-gb", theme="memory and size", source="D",
        told="Scores of 32 x 12 x 1024 x 1024 numbers in fp32 take 1.5 GB.",
        question="How many bytes are they?", method="A tensor of this shape is made without memory, and its bytes are read.",
        verdict=scores_of_d, experiment=f"{SIZES}:scores_of_d", seconds=1, scale="exact",
    ),
    Measured(
        number=7, name="layer-1-gb", theme="memory and size", source="A",
        told="At batch 32, 8 heads and 1,024 tokens attention takes 1 GB a layer.",
        question="How large is a matrix of scores, and what does a layer keep of it?",
        method="The matrix is counted, and the layer is predicted as training runs it, operator by operator.",
        verdict=layer_of_a, experiment=f"{SIZES}:scores_of_a", seconds=1, scale="8 heads of 32, float32, predicted",
    ),
    Measured(
        number=8, name="matrix-4-gb", theme="memory and size", source="B",
        told="The T x T matrix at T = 65,536 takes 4 GB.",
        question="In which format of numbers?", method="A tensor of this shape is made without memory in each format.",
        verdict=one_long_matrix, experiment=f"{SIZES}:one_long_matrix", seconds=1, scale="one head of one text, exact",
    ),
    Measured(
        number=9, name="attention-30-40-percent", theme="memory and size", source="D",
        told="Attention is 30 to 40% of the memory of training.",
        question="What would a training step not take without its T x T matrices, at which length?",
        method="The peak of a step of article D's encoder is predicted with written-out attention and with flash attention.",
        verdict=share, experiment=f"{SIZES}:share_of_attention", seconds=1,
        scale="6 layers of 768, 12 heads, batch 32, float32, predicted",
    ),
    Measured(
        number=10, name="flash-reads-linear", theme="memory and size", source="D",
        told="Flash attention reads O(n) memory in place of O(n^2); its operations are the same.",
        question="What grows with length, and what with its square?",
        method="Memory held and operations are counted in the flash attention of this lab; bytes moved are those of the "
        "paper's algorithm (arXiv:2205.14135, theorem 2), which reads keys and values once for each tile of queries.",
        verdict=reads, experiment=f"{SIZES}:reads_of_flash", seconds=3, scale="heads of 64, tiles of 256, float32",
    ),
    Measured(
        number=13, name="batch-rule", theme="memory and size", source="C",
        told="The largest batch is (GPU memory - 1 GB) / (T x d_model x 8 x 4).",
        question="How far is the rule from what fits?",
        method="The rule is held against the largest batch whose training step is predicted to fit 16 GB.",
        verdict=batch_rule, experiment=f"{SIZES}:batch_rule", seconds=2,
        scale="1, 3 and 6 layers of 256, 128 to 1,024 tokens, eager and sdpa, float32, predicted",
    ),
    Measured(
        number=49, name="parameters", theme="memory and size", source="A",
        told="These configurations have 9.2 million (Transformer) and 8.6 million (BiLSTM) parameters.",
        question="How many parameters do they have?",
        method="Both networks are made as told, without memory, and counted.",
        verdict=parameters, experiment=f"{SIZES}:parameters", seconds=1,
        scale="vocabulary 20,000; 3 layers of 256 with d_ff 1,024; embedding 200 and hidden 256",
    ),
)  # fmt: skip
