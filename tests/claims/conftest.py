from collections.abc import Iterator

import pytest
from accelerate.state import AcceleratorState


@pytest.fixture(autouse=True)
def state_of_its_own(monkeypatch, tmp_path_factory) -> Iterator[None]:
    """A Trainer leaves its precision in the environment and in accelerate, whose state is of the whole process."""
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
