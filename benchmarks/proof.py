"""Which kernels were proved on which machine: `python -m benchmarks.proof` writes the README's table, and its figures here.

The same cases as `tests/attention/test_proof.py`; what a backend offers is read from the catalogue.
"""

import warnings
from unittest.mock import patch

from torch.nn.attention.flex_attention import flex_attention

from benchmarks.suite import HERE, ROOT, recorded
from core.attention import flex
from core.catalog import BACKENDS
from core.recorded import Column, Recorded, Table, Value, write
from tests.attention.proof import DTYPES, largest_error, offered

README = ROOT / "README.md"
FIGURES = HERE / "RESULTS_proof.json"
KINDS = ("values", "gradients")
MARKERS = ("<!-- proof: python -m benchmarks.proof -->", "<!-- end of proof -->")
HEAD = """\
| kernel | runs on | cannot | float32 | bfloat16 | float16 | proved |
|---|---|---|---|---|---|---|"""


def proved() -> Recorded:
    """The largest error of each backend and format, of values and of gradients, and the number of combinations."""
    warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
    errors: dict[tuple[str, str], dict[str, float]] = {}
    with patch.object(flex, "_compiled", lambda dynamic: flex_attention):
        for name in BACKENDS:
            for dtype, *what in offered(name):
                largest = errors.setdefault((name, dtype), {})
                kind = "gradients" if what[-1] else "values"
                largest[kind] = max(largest.get(kind, 0.0), largest_error(name, dtype, *what))
    proved = {name for name, _ in errors}
    return recorded("Attention kernels against attention written out in float64", "python -m benchmarks.proof", tables=(
        errors_table(errors), combinations_table({name: len(offered(name)) for name in BACKENDS if name in proved}),
    ))  # fmt: skip


def errors_table(errors: dict[tuple[str, str], dict[str, float]]) -> Table:
    """By backend and format."""
    return Table(
        name="errors",
        caption="The largest difference, as a share of the largest number of the answer, or of 1 where that is less.",
        columns=tuple(Column(name=name) for name in ("backend", "numbers", *KINDS)),
        rows=tuple((*key, *(found.get(kind) for kind in KINDS)) for key, found in errors.items()),
    )


def combinations_table(counts: dict[str, int]) -> Table:
    """By backend."""
    return Table(
        name="combinations",
        caption="Of masks, positions, padding, number formats and gradients, each at several lengths and numbers of heads.",
        columns=(Column(name="backend"), Column(name="combinations")),
        rows=tuple(counts.items()),
    )


def largest_errors(found: Recorded) -> dict[tuple[Value, Value], dict[str, Value]]:
    """Of values and gradients, where they were proved, by backend and format."""
    rows = found.table("errors").rows
    return {(name, dtype): {k: v for k, v in zip(KINDS, e, strict=True) if v is not None} for name, dtype, *e in rows}


def combinations(found: Recorded) -> dict[Value, Value]:
    """By backend."""
    return {name: n for name, n in found.table("combinations").rows}


def table(found: Recorded) -> str:
    """As Markdown: a row for each backend of the catalogue."""
    errors, counts = largest_errors(found), combinations(found)
    rows = []
    for name, backend in BACKENDS.items():
        cannot = {device: ", ".join(what for what in lacks if what != "weights") for device, lacks in backend.cannot.items()}
        lacks = "; ".join(f"{device}: {what.replace('_', ' ')}" for device, what in cannot.items() if what)
        shown = [", ".join(f"{error:.0e}" for error in errors.get((name, dtype), {}).values()) or "-" for dtype in DTYPES]
        n, where = counts.get(name), found.hardware.split(",")[0]
        proved = f"{n} combinations, {where}" if n else "nowhere: no GPU was at hand"
        rows.append(f"| `{name}` | {', '.join(backend.dtypes)} | {lacks or '-'} | {' | '.join(shown)} | {proved} |")
    return "\n".join([HEAD, *rows])


def with_table(text: str, table: str) -> str:
    """The README with this table between its markers."""
    start, end = MARKERS
    return f"{text[: text.index(start)]}{start}\n{table}\n{text[text.index(end) :]}"


def main() -> None:
    """Proves, and writes the figures and the table."""
    found = proved()
    write(found, FIGURES.with_suffix(""))
    text = README.read_text(encoding="utf-8")
    README.write_text(with_table(text, table(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
