from collections.abc import Callable

import pytest

from core.records import Cell


@pytest.fixture
def cell() -> Callable[..., Cell]:
    """A small cell with other sizes on every axis; `knobs` change it."""

    def make(**knobs) -> Cell:
        small = dict(
            backend="eager", what="backward", batch=3, length=40, n_heads=2, d_head=8, n_layers=2, dtype="float32", device="cpu"
        )
        return Cell(**(small | knobs))

    return make
