"""How the learning rate moves, as a factor of its highest value."""

import math

WARMUP_START = 1 / 25  # of one-cycle, as in arXiv:1708.07120 and PyTorch's OneCycleLR
ANNEALED = 1 / 25e4


def factor(schedule: str, step: int, total_steps: int, warmup_ratio: float) -> float:
    """The factor at `step`, from 0. Warm-up takes its share of all steps; step total_steps - 1 is the last.

    one-cycle: cosine up from 1/25, cosine down to 4e-6 (arXiv:1708.07120); linear: up, then down to 0 at the step after the
    last; constant: up, then 1; inverse-sqrt: up, then by 1/sqrt(step) (arXiv:1706.03762, section 5.3). The three rise from
    0 at the step before the first, since a step of rate 0 would do nothing.
    """
    if schedule == "one-cycle":
        peak, last = warmup_ratio * total_steps - 1, total_steps - 1
        if step <= peak:
            return _cosine(WARMUP_START, 1.0, step / peak if peak else 1.0)
        return _cosine(1.0, ANNEALED, (step - peak) / max(last - peak, 1e-9))
    step, peak = step + 1, math.floor(warmup_ratio * total_steps) + 1  # from 1, as the paper counts
    if step < peak:
        return step / peak
    if schedule == "linear":
        return (total_steps + 1 - step) / (total_steps + 1 - peak)
    if schedule == "inverse-sqrt":
        return math.sqrt(peak / step)
    assert schedule == "constant", schedule
    return 1.0


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(share, 1.0))) / 2
