"""The README says what is true, and CI does what the README says."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

from core.catalog import BACKENDS, POSITIONAL, SOURCES
from core.presets import PRESETS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci/run").read_text(encoding="utf-8")


def commands() -> list[str]:
    """The lines of the README's shell blocks."""
    return [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line]


def test_ci_runs_the_test_command_of_the_readme():
    (line,) = [command for command in commands() if command.endswith("&& pytest")]
    assert line in CI


def test_the_app_starts_with_the_command_that_is_promised():
    assert "pip install -r requirements.txt && streamlit run app.py" in commands()


def test_requirement_files_pin_torch_and_give_ranges_for_the_rest():
    for name in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / name).read_text().splitlines():
            assert re.fullmatch(r"[a-z0-9-]+(==[\d.]+|>=[\d.]+,<\d[\d.]*)", line), line
    assert "torch==2.13.0" in (ROOT / "requirements.txt").read_text().splitlines()


def test_every_command_of_the_lab_in_the_readme_is_understood(capsys):
    from core.__main__ import main

    verbs = {shlex.split(command)[3] for command in commands() if command.startswith("python -m core")}
    assert verbs == {"train", "evaluate", "predict", "attend", "explain", "measure", "ablate", "claims", "jobs"}
    for command in (command for command in commands() if command.startswith("python -m core")):
        words = shlex.split(command)[3:]
        try:
            main([*takewhile(lambda word: not word.startswith("--"), words), "--help"])
        except SystemExit as done:
            assert done.code == 0
        shown = capsys.readouterr().out
        for flag in (word for word in words if word.startswith("--")):
            assert flag in shown, f"{flag} of {command!r}"


def test_paths_in_the_readme_exist():
    for path in re.findall(r"`((?:core|ui|pages|models|tests)/[\w/.-]+)`", README):
        assert (ROOT / path).exists(), path


def test_every_choice_by_name_is_in_the_readme():
    for name in (*BACKENDS, *POSITIONAL, *SOURCES, *PRESETS):
        assert f"`{name}`" in README, name
