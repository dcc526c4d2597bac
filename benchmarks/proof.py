"""Which kernels were proved on which machine: `python -m benchmarks.proof` writes the README's table, and its figures here.

The same cases as `tests/attention/test_proof.py`; what a backend offers is read from the catalogue.
"""

import datetime
import json
import re
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.nn.attention.flex_attention import flex_attention

from core.attention import flex
from core.catalog import BACKENDS
from core.training.machine import hardware
from tests.attention.proof import DTYPES, largest_error, offered

README = Path(__file__).parent.parent / "README.md"
FIGURES = Path(__file__).parent / "RESULTS_proof.json"
MARKERS = ("<!-- proof: python -m benchmarks.proof -->", "<!-- end of proof -->")
HEAD = """\
| kernel | runs on | cannot | float32 | bfloat16 | float16 | proved |
|---|---|---|---|---|---|---|"""


def proved() -> dict[str, Any]:
    """The largest error of each backend and format, of values and of gradients, and the number of combinations."""
    warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
    errors: dict[str, Any] = {}
    with patch.object(flex, "_compiled", lambda dynamic: flex_attention):
        for name in BACKENDS:
            for dtype, *what in offered(name):
                largest = errors.setdefault(name, {}).setdefault(dtype, {})
                kind = "gradients" if what[-1] else "values"
                largest[kind] = max(largest.get(kind, 0.0), largest_error(name, dtype, *what))
    return {
        "date": str(datetime.date.today()),
        "torch": torch.__version__,
        "hardware": hardware("cpu"),
        "errors": errors,
        "combinations": {name: len(offered(name)) for name in errors},
    }


def table(found: dict[str, Any]) -> str:
    """As Markdown: a row for each backend of the catalogue."""
    rows = []
    for name, backend in BACKENDS.items():
        cannot = {device: ", ".join(what for what in lacks if what != "weights") for device, lacks in backend.cannot.items()}
        lacks = "; ".join(f"{device}: {what.replace('_', ' ')}" for device, what in cannot.items() if what)
        errors = [_told(found["errors"].get(name, {}).get(dtype)) for dtype in DTYPES]
        n = found["combinations"].get(name)
        where = f"{n} combinations, {found['hardware']['cpu']}" if n else "nowhere: no GPU was at hand"
        rows.append(f"| `{name}` | {', '.join(backend.dtypes)} | {lacks or '-'} | {' | '.join(errors)} | {where} |")
    return "\n".join([HEAD, *rows])


def _told(errors: dict[str, float] | None) -> str:
    return ", ".join(f"{error:.0e}" for error in errors.values()) if errors else "-"


def between_markers(text: str) -> str:
    """The table that a README holds."""
    start, end = map(re.escape, MARKERS)
    (found,) = re.findall(f"{start}\n(.*?)\n{end}", text, re.DOTALL)
    return found


def with_table(text: str, table: str) -> str:
    """The README with this table between its markers."""
    start, end = MARKERS
    return f"{text[: text.index(start)]}{start}\n{table}\n{text[text.index(end) :]}"


def main() -> None:
    """Proves, and writes the figures and the table."""
    found = proved()
    FIGURES.write_text(json.dumps(found, indent=1) + "\n")
    text = README.read_text(encoding="utf-8")
    README.write_text(with_table(text, table(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
