"""Which backends a test on a CPU can ask for what."""

from dataclasses import replace

import pytest

from core.attention import eager, varlen
from core.attention.masks import AttentionMask
from core.catalog import BACKENDS


def able(**asked: bool) -> list[str]:
    """Names of those that run on a CPU and do what is asked there, by the keys of `core.catalog.CANNOT`."""
    return [name for name, backend in BACKENDS.items() if backend.why_not(device="cpu", **asked) is None]


def packing(monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[AttentionMask]]:
    """The name of a backend as for a GPU's packed kernel, which can be asked on a CPU, and the masks that it is given."""
    masks = []

    def attend(q, k, v, mask, bias, scale, dropout_p):
        masks.append(mask)
        assert mask.token_mask is None
        return eager.attend(q, k, v, mask, bias, scale, dropout_p)

    here = replace(BACKENDS["varlen"], dtypes=BACKENDS["eager"].dtypes, cannot={"cpu": ("weights", "padding")})
    monkeypatch.setitem(BACKENDS, "packing", here)
    monkeypatch.setattr(varlen, "attend", attend)
    return "packing", masks
