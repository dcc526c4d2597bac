"""A kernel on every case, and how far it is from attention written out in float64."""

import torch
from torch import Tensor

from core.attention.masks import AttentionMask
from core.catalog import BACKENDS, POSITIONAL
from core.config import EncoderArchitecture
from tests.attention.written_out import D_HEAD, MASKS, POSITIONS, Case, answer, cases, drawn

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
TOLERANCE = {"float32": 1e-5, "bfloat16": 4e-2, "float16": 5e-3}
"""Largest difference, as a share of the largest number of the answer, or of 1 where that is less."""
WHAT = [(mask, padded) for mask in MASKS for padded in (False, True) if not (mask == "packed" and padded)]


def offered(name: str, device: str = "cpu") -> list[tuple[str, str, str, bool, bool]]:
    """(dtype, mask, position, padded, gradients) that the catalogue says a backend can do on a device."""
    return [
        (dtype, mask, position, padded, gradients)
        for dtype in DTYPES
        for mask, padded in WHAT
        for position in POSITIONS
        for gradients in (False, True)
        if BACKENDS[name].why_not(
            device=device, dtype=dtype, padding=padded, places=mask != "all", global_tokens=MASKS[mask][2] > 0,
            bias=position == "alibi", gradients=gradients,
        ) is None
    ]  # fmt: skip


def error(name: str, case: Case, dtype: str, gradients: bool) -> float:
    """The largest difference of the output where real tokens ask; with `gradients`, of those of q, k and v."""
    *inputs, above = (x.to(DTYPES[dtype], copy=True) for x in drawn(case))
    q, k, v = (x.requires_grad_(gradients) for x in inputs)
    with torch.set_grad_enabled(gradients):
        out = attended(name, case, q, k, v)
    assert out.dtype == DTYPES[dtype] and out.isfinite().all(), case
    expected, *expected_gradients = answer(case)
    if gradients:
        found = torch.autograd.grad(out, (q, k, v), above)
        assert all(x.dtype == DTYPES[dtype] for x in found)
        return max(map(_difference, found, expected_gradients))
    asked = case.real[:, None, :, None]
    return _difference(out * asked, expected * asked)


def attended(name: str, case: Case, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """What a backend makes of a case."""
    causal, window, n_global, packed = MASKS[case.mask]
    segments = torch.tensor([*case.starts, case.length]) if packed else None
    mask = AttentionMask(case.real if case.padded else None, causal, window, n_global, segments)
    architecture = EncoderArchitecture(n_heads=case.heads, d_model=case.heads * D_HEAD, positional="none")
    encoding = POSITIONAL[case.position].resolve()(architecture)
    codes = encoding.codes(case.places, int(case.places.max()) + 1)
    q, k = encoding.rotate(q, codes), encoding.rotate(k, codes)
    return BACKENDS[name].resolve()(q, k, v, mask, encoding.bias(q.device))[0]


def _difference(found: Tensor, expected: Tensor) -> float:
    return ((found.double() - expected).abs().max() / max(1.0, expected.abs().max())).item()


def largest_error(name: str, dtype: str, mask: str, position: str, padded: bool, gradients: bool) -> float:
    """Of all lengths; of some for FlexAttention, which is traced for each."""
    every = cases(mask, position, padded)
    return max(error(name, case, dtype, gradients) for case in (every[1:8:3] if name == "flex" else every))


def all_offered() -> list[tuple[str, str, str, str, bool, bool]]:
    """Each backend with each thing that it is said to do on a CPU."""
    return [(name, *what) for name in BACKENDS for what in offered(name)]
