"""Figures out of recorded tables."""

from collections.abc import Callable, Mapping

from core.claims.figures import Found, interval, mean
from core.recorded import Table, Value

BASE = "base"
"""What ablations of an experiment are held against."""


def cell(table: Table, column: str, where: Mapping[str, Value]) -> float | None:
    """The number of a column in the first row whose columns have the values of `where`; None if there is none."""
    wanted = [table.column(name) for name in where]
    for row, value in enumerate(table.column(column)):
        if all(values[row] == expected for values, expected in zip(wanted, where.values(), strict=True)):
            return float(value) if isinstance(value, int | float) else None
    return None


def on_devices(tables: Mapping[str, Table], name: str, of: Callable[[Table], float | None]) -> Found:
    """A figure of each device, under `name`; None where its table lacks it."""
    return {f"{name}, {device}": of(table) for device, table in tables.items()}


def ratio(over: float | None, under: float | None) -> float | None:
    """None where either is missing."""
    return over / under if over and under else None


def lost(tables: Mapping[str, Table], ablation: str, name: str, column: str = "accuracy") -> Found:
    """By how much an ablation is worse than its base over the seeds of a recorded experiment, in points, under `name`.

    Members of a seed that came to nothing are counted apart. Empty where the experiment has no such ablation.
    """
    for table in tables.values():
        base, variant = (_by_seed(table, member, column) for member in (BASE, ablation))
        if variant:
            seeds = [seed for seed, value in variant.items() if value is not None and base.get(seed) is not None]
            failed = {f"{ablation}: trainings that failed": sum(value is None for value in variant.values())}
            both = [[float(of[seed] or 0.0) for seed in seeds] for of in (variant, base)]
            means = {f"{member}, {column} %": 100 * mean(values) for member, values in zip((ablation, BASE), both, strict=True)
                     if values}  # fmt: skip
            found = interval(name, *both) if len(seeds) > 1 else {"seeds": len(seeds)}
            return means | found | failed
    return {}


def _by_seed(table: Table, member: str, column: str) -> dict[Value, float | None]:
    """A member's figure by seed; of a base that differs from ablation to ablation, the first."""
    found: dict[Value, float | None] = {}
    for name, seed, value in zip(table.column("ablation"), table.column("seed"), table.column(column), strict=True):
        if str(name).partition(",")[0] == member and seed not in found:
            found[seed] = float(value) if isinstance(value, int | float) else None
    return found
