from pathlib import Path

import numpy as np
import pytest

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
