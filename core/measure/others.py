"""What else a machine does while something is timed on it, from Linux's /proc. No torch here."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from core.events import BackendMeasured, CellMeasured

STAT = Path("/proc/stat")
IDLE = (3, 4)
"""Places of the time without work, and of that spent waiting for a disk, in the first line of `STAT`."""
GUEST = 8
"""From this place on, times are counted in earlier ones, too."""
MOST = 0.1
"""Share of a machine that others may use; beyond it, a time is as much theirs as the kernel's."""


def watch() -> Callable[[], float | None]:
    """Starts to look; the answer's share, from 0 to 1, is that of the machine's CPU time since then that other processes had.

    None where the system does not say. It counts in hundredths of a second: a look is to last a good part of one.
    """
    before, own_before = _machine_s(), time.process_time()

    def others() -> float | None:
        after, own_s = _machine_s(), time.process_time() - own_before
        if before is None or after is None or after[1] <= before[1]:
            return None
        busy_s, all_s = (now - then for now, then in zip(after, before, strict=True))
        return min(max(busy_s - own_s, 0.0) / all_s, 1.0)

    return others


def _machine_s() -> tuple[float, float] | None:
    """Seconds since the machine's start that its CPUs were busy, and all of them; a hypervisor's other guests count as work."""
    with suppress(OSError, ValueError, IndexError):
        ticks = [int(number) for number in STAT.read_text().split("\n", 1)[0].split()[1:]][:GUEST]
        idle = sum(ticks[place] for place in IDLE)
        per_second = os.sysconf("SC_CLK_TCK")
        return (sum(ticks) - idle) / per_second, sum(ticks) / per_second
    return None


def disturbance(*cells: CellMeasured | BackendMeasured) -> str | None:
    """Why the times of these say nothing of their kernels; None if the machine was quiet, or did not say."""
    share = max((cell.others or 0.0 for cell in cells), default=0.0)
    return f"others used {100 * share:.0f}% of the machine while this was measured" if share > MOST else None
