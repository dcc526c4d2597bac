"""What may import what, what a page may load, and what is nowhere in the tree."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from core.catalog import BACKENDS, POSITIONAL, SOURCES
from core.config import DataConfig, EncoderArchitecture, RunConfig, TrainingConfig
from core.positional.base import PositionalEncoding
from core.presets import PRESETS

ROOT = Path(__file__).resolve().parent.parent
ORDER = [
    {"checked"},
    {"config"},
    {"records", "catalog", "words", "disk"},
    {"events"},
    {"presets", "flags", "ablations", "run_folder", "jobs", "runs", "statistics", "curves", "recorded", "tensorboard"},
    {"figures"},
    {"data", "attention", "positional"},
    {"networks"},
    {"hub"},
    {"artifact", "card"},
    {"training", "evaluation"},
    {"inspection", "measure"},
    {"experiments", "claims"},
    {"ablate"},
    {"__main__"},
    {"ui"},
    {"pages"},
    {"app"},
]
"""Rooms from the bottom up; those that do not exist yet have their place already."""
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
FLOOR = {room for rooms in ORDER[:6] for room in rooms} | {"artifact", "card", "hub"}
PRODUCT = sorted(path for top in ("core", "ui", "pages") for path in (ROOT / top).rglob("*.py")) + [ROOT / "app.py"]
SCRIPTS = [path for path in PRODUCT if path.parent.name == "pages" or path == ROOT / "ui" / "main.py"]
"""Files that streamlit runs: importing them draws a page."""


def tracked() -> list[Path]:
    """What belongs to the tree: known to git, or new and not ignored."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """The room of one of our modules; core itself has none."""
    top, *rest = module.split(".")
    return (rest[0] if rest else "") if top == "core" else top


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, inside functions too; of `from a import b` both a and a.b, as b may be a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(path: Path) -> set[str]:
    """The rooms that a file imports from."""
    names = {name for name in imported(path) if name.split(".")[0] in ("core", "ui", "pages", "app")}
    return {room(name) for name in names} - {"", room(module_name(path))}


def modules_after(code: str) -> set[str]:
    """Names of all modules loaded in a fresh process that ran `code`."""
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


# Imports


def test_every_file_has_a_place_in_the_order():
    rooms = {room(module_name(path)) for path in PRODUCT} - {""}
    assert rooms <= set(RANK), f"give {rooms - set(RANK)} a place in ORDER"


@pytest.mark.parametrize("path", PRODUCT, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    here = room(module_name(path))
    above = {other for other in ours(path) if RANK[other] > RANK.get(here, -1)}
    assert not above, f"{here} is below {above}"


def test_rooms_of_one_height_do_not_import_each_other():
    edges = {(room(module_name(path)), other) for path in PRODUCT for other in ours(path)}
    assert {(a, b) for a, b in edges if (b, a) in edges} == set()


def test_core_never_imports_streamlit():
    assert [path for path in PRODUCT if path.is_relative_to(ROOT / "core") and _tops(path) & {"streamlit", "ui", "pages"}] == []


def _tops(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(path)}


def test_a_page_is_painted_without_torch():
    modules = [module_name(p) for p in PRODUCT if p not in SCRIPTS and (room(module_name(p)) in FLOOR | {"ui", "app"})]
    lines = [f"import {name}" for name in modules]
    for path in SCRIPTS:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        lines += [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    loaded = modules_after("\n".join(lines))
    assert set(modules) <= loaded
    assert not loaded & {"torch", "transformers", "datasets", "accelerate", "tokenizers"}


def test_no_page_is_stopped_below_a_run_that_it_follows():
    """At `st.stop`, Streamlit 1.67 forgets the buttons of a fragment that were pressed meanwhile."""
    followed = {path: path.read_text(encoding="utf-8").partition(".follow(")[2] for path in SCRIPTS}
    assert any(followed.values())
    assert [path.name for path, below in followed.items() if "st.stop()" in below] == []


def test_networks_import_torch_alone():
    networks = ["core.networks.encoder", "core.networks.decoder", "core.networks.bilstm", "core.networks.blocks"]
    rooms = [module_name(p) for p in PRODUCT if room(module_name(p)) in ("attention", "positional")]
    loaded = modules_after("\n".join(f"import {name}" for name in networks + rooms))
    assert set(networks + rooms) | {"torch"} <= loaded
    assert not loaded & {"transformers", "datasets", "pandas", "streamlit"}


# What is nowhere

UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
UNSAFE_NAMES = {"torch.load", "pd.read_pickle", "pandas.read_pickle", "os.system", "os.popen", "eval", "exec"}
UNSAFE_FLAGS = {"unsafe_allow_html", "unsafe_allow_javascript", "trust_remote_code", "shell", "allow_pickle"}


def unsafe(source: str) -> set[str]:
    """What in a Python text runs what it reads, or shows it as markup."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] in UNSAFE_MODULES}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} & UNSAFE_MODULES
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & UNSAFE_NAMES
        elif isinstance(node, ast.Attribute | ast.Name):
            found |= {ast.unparse(node)} & UNSAFE_NAMES
        elif isinstance(node, ast.keyword) and node.arg in UNSAFE_FLAGS and ast.unparse(node.value) != "False":
            found.add(node.arg)
    return found


@pytest.mark.parametrize("source", [
    "import torch\ntorch.load(p)", "from torch import load", "import pickle", "from pickle import loads", "import joblib",
    "st.markdown(t, unsafe_allow_html=True)", "A.from_pretrained(p, trust_remote_code=flag)", "run(c, shell=True)",
    "np.load(p, allow_pickle=True)", "eval(t)",
])  # fmt: skip
def test_what_is_unsafe_is_found(source):
    assert unsafe(source)


def test_what_is_safe_is_left_alone():
    assert not unsafe("json.load(f); model.eval(); run(c, shell=False); np.load(p, allow_pickle=False); pickle = 1")


def test_nothing_read_is_run_or_shown_as_markup():
    files = [path for path in tracked() if path.suffix == ".py"]
    found = {path.relative_to(ROOT).as_posix(): unsafe(path.read_text(encoding="utf-8")) for path in files}
    assert len(found) > 40 and {name: names for name, names in found.items() if names} == {}


PATH_OF_A_MACHINE = re.compile(r"(?<![\w.])/(?:work|root)/|(?<![\w.])/(?:home|Users)/\w|[A-Z]:\\Users\\")


def test_a_path_of_a_machine_is_found():
    named = ["/work" + "/x", "see /root" + "/.cache", "'/home" + "/ann/x'", "C:\\Users" + "\\ann"]
    assert all(PATH_OF_A_MACHINE.search(text) for text in named)
    assert not PATH_OF_A_MACHINE.search("artwork/x and /proc/self and https://example.org/work/3 and pages/home.py")


def test_no_file_names_a_path_of_a_machine():
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # pictures and weights
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in PATH_OF_A_MACHINE.finditer(text)]
    assert found == []


# The catalogue


@pytest.mark.parametrize("catalog", [BACKENDS, POSITIONAL, SOURCES], ids=["backends", "positional", "sources"])
def test_every_entry_resolves_and_has_a_summary(catalog):
    for entry in catalog.values():
        assert callable(entry.resolve())
        assert entry.summary.endswith(".")


def test_names_are_the_choices_of_the_configuration():
    assert tuple(POSITIONAL) == get_args(get_type_hints(EncoderArchitecture)["positional"])
    assert ("auto", *BACKENDS) == get_args(get_type_hints(TrainingConfig)["backend"])
    assert DataConfig().data in SOURCES


def test_every_backend_takes_what_eager_takes():
    expected = inspect.signature(BACKENDS["eager"].resolve()).parameters
    for name, backend in BACKENDS.items():
        parameters = inspect.signature(backend.resolve()).parameters
        assert [(p.name, p.default) for p in parameters.values()] == [(p.name, p.default) for p in expected.values()], name


def test_every_position_is_a_positional_encoding():
    assert all(issubclass(entry.resolve(), PositionalEncoding) for entry in POSITIONAL.values())


def test_every_preset_is_a_configuration_that_says_what_it_is_for():
    for make in PRESETS.values():
        assert isinstance(make(), RunConfig) and (make.__doc__ or "").strip()
