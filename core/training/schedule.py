"""How the learning rate moves, as a factor of its highest value."""

import math

WARMUP_START = 1 / 25  # of one-cycle, as in arXiv:1708.07120 and PyTorch's OneCycleLR
ANNEALED = 1 / 25e4


def factor(schedule: str, step: int, total_steps: int, warmup_ratio: float) -> float:
    """The factor at `step`, from 0. Warm-up takes its share of all steps; step total_steps - 1 is the last.

    one-cycle: cosine up from 1/25, cosine down to 4e-6 (arXiv:1708.07120); linear: up from 0, down to 0; constant: up,
    then 1; inverse-sqrt: up, then by 1/sqrt(step) (arXiv:1706.03762, section 5.3).
    """
    warmup = warmup_ratio * total_steps
    if schedule == "one-cycle":
        peak, last = warmup - 1, total_steps - 1
        if step <= peak:
            return _cosine(WARMUP_START, 1.0, step / peak if peak else 1.0)
        return _cosine(1.0, ANNEALED, (step - peak) / max(last - peak, 1e-9))
    if step < warmup:
        return (step + 1) / (math.floor(warmup) + 1)
    if schedule == "linear":
        return (total_steps - step) / max(total_steps - warmup, 1)
    if schedule == "inverse-sqrt":
        return math.sqrt(max(warmup, 1) / max(step, 1)) if step > warmup else 1.0
    assert schedule == "constant", schedule
    return 1.0


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(share, 1.0))) / 2
