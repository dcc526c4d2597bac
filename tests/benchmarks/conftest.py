from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from accelerate.state import AcceleratorState

from benchmarks.arrays import Arrays, save
from benchmarks.suite import Setting
from core.data import tokenizer as tokenizers
from tests.small_models import TEXTS


@pytest.fixture
def arrays() -> Arrays:
    """Seven reviews of 1 to 7 tokens, of which review i is i, i, ..: four, one and two of the sides."""
    lengths = np.arange(1, 8)
    return Arrays(
        ids=np.repeat(np.arange(7) + 10, lengths),
        offsets=np.cumsum([0, *lengths]),
        labels=np.arange(7) % 2,
        counts=np.array([4, 1, 2]),
        texts=TEXTS,
        tokenizer=tokenizers.train(TEXTS * 3, 200).to_str(),
    )


@pytest.fixture
def setting(arrays, tmp_path) -> Setting:
    """The smallest."""
    path = Path(tmp_path) / "arrays.npz"
    save(arrays, path)
    return Setting(quick=True, arrays=str(path))


@pytest.fixture(autouse=True)
def state_of_its_own(monkeypatch) -> Iterator[None]:
    """A Trainer leaves its precision in the environment and in accelerate, whose state is of the whole process."""
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
