"""A contestant in a process of its own: allocator, threads and kernels that another has set do not reach it.

The process is started at once, makes its contestant, and runs it whenever a line is written to it.
"""

import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any

from benchmarks.suite import ROOT, Setting


class Worker:
    """Calls a function made by `make`, "module:function", with the setting and knobs, in its own process."""

    def __init__(self, make: str, setting: Setting, **knobs: object) -> None:
        self.make = make
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", json.dumps([make, asdict(setting), knobs])],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip

    def __call__(self) -> Any:
        """What the function gives. ValueError if its process ended instead, with what it said last."""
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            self.errors.seek(0)
            last = self.errors.read().strip().splitlines()[-1:] or [f"exit code {self.process.wait()}"]
            raise ValueError(f"{self.make} ended: {last[0]}") from None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()


def main(words: Sequence[str]) -> None:
    """Answers on what was standard output; all that libraries print goes to standard error."""
    make, setting, knobs = json.loads(words[0])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    run = pkgutil.resolve_name(make)(Setting(**setting), **knobs)
    for _ in sys.stdin:
        print(json.dumps(run()), file=answers)


if __name__ == "__main__":
    main(sys.argv[1:])
