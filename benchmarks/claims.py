"""Figures of all claims that are not read from other results: `python -m benchmarks.claims`, a quarter of an hour on a core.

`--only NAMES` measures some again and keeps the rest of the same day. `python -m core claims` makes verdicts of them.
"""

import argparse
import sys
from dataclasses import replace

from benchmarks.suite import HERE, recorded
from core.claims.catalog import CLAIMS
from core.claims.claim import Measured
from core.claims.findings import measure, measured_before, table
from core.recorded import file_name, read_file, write

MEASURED = {name: claim for name, claim in CLAIMS.items() if isinstance(claim, Measured)}
SEEDS = "Trainings are of three seeds, or as a claim's scale says."


def main() -> None:
    """Measures one claim after the other, and writes the file anew after each; one that fails leaves the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(MEASURED), help="names of claims, with commas between")
    chosen = parser.parse_args().only.split(",")
    if unknown := set(chosen) - set(MEASURED):
        parser.error(f"only: got {', '.join(sorted(unknown))}, expected some of {', '.join(MEASURED)}")
    results = recorded("Figures of claims", "python -m benchmarks.claims")
    path = HERE / file_name(results, "claims")
    written = path.with_name(f"{path.name}.json")
    found = measured_before(read_file(written)) if written.is_file() else {}
    for name in chosen:
        try:
            found[name] = measure(MEASURED[name])
        except (ValueError, OSError, RuntimeError) as error:
            print(f"{name}: not measured, {error}", file=sys.stderr, flush=True)
            continue
        in_order = [found[claim] for claim in MEASURED if claim in found]
        write(replace(results, notes=(*results.notes, SEEDS), tables=(table(in_order),)), path)
        print(name, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
