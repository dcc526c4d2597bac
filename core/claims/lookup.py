"""Figures out of recorded tables."""

from collections.abc import Callable, Mapping

from core.claims.figures import Found, interval, mean
from core.recorded import Table, Value


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

    Trainings that came to nothing are counted apart. Empty where the experiment has no such ablation.
    """
    for table in tables.values():
        variant = _by_seed(table, ablation, column)
        bases = {
            base for member, base in zip(table.column("ablation"), table.column("base"), strict=True) if member == ablation
        }
        for base in bases:
            return _lost(ablation, name, column, _by_seed(table, base, column), variant)
    return {}


def _lost(
    ablation: str, name: str, column: str, base: Mapping[Value, float | None], variant: Mapping[Value, float | None]
) -> Found:
    pairs = [(after, before) for seed, after in variant.items() if after is not None and (before := base.get(seed)) is not None]
    worse, better = ([pair[place] for pair in pairs] for place in (0, 1))
    means: Found = {f"{of}, {column} %": 100 * mean(values) for of, values in ((ablation, worse), ("base", better)) if values}
    found: Found = interval(name, worse, better) if len(pairs) > 1 else {"seeds": len(pairs)}
    return means | found | {f"{ablation}: trainings that failed": sum(after is None for after in variant.values())}


def _by_seed(table: Table, member: Value, column: str) -> dict[Value, float | None]:
    """A figure of a member by seed; None for a training that came to nothing."""
    rows = zip(table.column("ablation"), table.column("seed"), table.column(column), strict=True)
    return {seed: float(value) if isinstance(value, int | float) else None for name, seed, value in rows if name == member}
