"""Experiments on numbers, masks and shapes: one call each, on made tensors."""

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor, nn

from core.artifact import models_root, open_model
from core.attention import eager
from core.attention.eager import scores
from core.attention.masks import AttentionMask
from core.claims.experiments.maps import READER, some_reviews
from core.claims.figures import Figures, Found, mean
from core.data.batches import collate
from core.data.tokenizer import encode
from core.networks import mistakes
from core.networks.blocks import split_heads

SIZES = (16, 64, 256)
KEYS = 64


def _drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def variance() -> Figures:
    """Variance of q k^T of standard normal vectors, and the largest weight among 64 keys, scaled and not."""
    figures: Found = {}
    for d_head in SIZES:
        q, k = (_drawn(2, 1, 1, 500 * d_head).reshape(2, 1, 500, d_head)[place][None] for place in (0, 1))
        logits = scores(q, k, None, 1.0)
        figures[f"d_head {d_head}: variance over d_head"] = float(logits.var()) / d_head
        for name, scale in (("scaled", d_head**-0.5), ("not scaled", 1.0)):
            weights = scores(q, k[:, :, :KEYS], None, scale).softmax(-1)
            figures[f"d_head {d_head}, {name}: largest weight"] = float(weights.amax(-1).mean())
    return figures


FILLS = {"-inf": "fill_-inf", "-1e9": "fill_-1e9"}


def fills() -> Figures:
    """Numbers of the gradient that are not finite, where a review has no token left to see and where it has one."""
    figures: Found = {}
    for left, token_mask in (("nothing", torch.zeros(1, 4, dtype=torch.bool)), ("one token", torch.arange(4)[None] < 1)):
        ways = {name: mistakes.attention(mistake, "eager", eager.attend) for name, mistake in FILLS.items()}
        for name, attend in (ways | {"this lab": eager.attend}).items():
            q, k, v = (_drawn(1, 2, 4, 8).requires_grad_() for _ in range(3))
            gradients = torch.autograd.grad(attend(q, k, v, AttentionMask(token_mask))[0].sum(), (q, k, v))
            figures[f"{left} to see, {name}: not finite"] = sum(int((~gradient.isfinite()).sum()) for gradient in gradients)
    largest = torch.tensor(-1e9).half()
    return figures | {"-1e9 in float16": str(largest.item())}


GROWING = tuple(2**power for power in range(8))
"""Standard deviations of the components of queries and keys."""


def overflow() -> Figures:
    """From which size of queries and keys on float16 scores overflow, by length, and with the scale before the product."""
    figures: Found = {}
    for length in (128, 1024):
        x = _drawn(2, 1, 1, length, 64)
        for name, scale in (("product first", 1.0), ("scale first", 64**-0.5)):
            over = [
                size for size in GROWING if not scores((size * x[0]).half(), (size * x[1]).half(), None, scale).isfinite().all()
            ]
            figures[f"{length} tokens, {name}: overflows from size"] = over[0] if over else None
        figures[f"{length} tokens: largest score at size 1"] = float((x[0] @ x[1].mT).abs().max())
    return figures


def masked_after() -> Figures:
    """Sums of rows of weights, and how far an output moves with what padding holds."""
    token_mask = torch.arange(8)[None] < 5
    figures: Found = {}
    wrong = mistakes.attention("mask_after_softmax", "eager", eager.attend)
    for name, attend in (("mask after softmax", wrong), ("this lab", eager.attend)):
        q, k, v = (_drawn(1, 2, 8, 16) for _ in range(3))
        out, weights = attend(q, k, v, AttentionMask(token_mask))
        assert weights is not None
        moved = k + 3 * (~token_mask)[:, None, :, None]
        other = attend(q, moved, v, AttentionMask(token_mask))[0]
        figures[f"{name}: smallest sum of a row"] = float(weights.sum(-1).min())
        figures[f"{name}: an output moves with padding by"] = float((other - out)[:, :, :5].abs().max())
    return figures


def mask_shapes() -> Figures:
    """Which shapes of a mask are taken for scores (2, 4, 7, 7), and what becomes of one for each review where B is H."""
    logits, token_mask = torch.zeros(2, 4, 7, 7), torch.arange(7) < torch.tensor([[5], [7]])
    pairs = token_mask[:, None, :].expand(2, 7, 7)
    square = torch.zeros(2, 2, 7, 7)
    per_head = square.masked_fill(~pairs, 1.0)
    return {
        "(B, 1, 1, T)": _taken(lambda: logits.masked_fill(~token_mask[:, None, None, :], 1.0)),
        "(B, T)": _taken(lambda: logits.masked_fill(~token_mask, 1.0)),
        "(B, T, T)": _taken(lambda: logits.masked_fill(~pairs, 1.0)),
        "(B, T, T) where B is H": "taken for heads, in silence" if bool((per_head[0, 0] != per_head[0, 1]).any()) else "right",
    }


def _taken(run: Callable[[], object]) -> str:
    with suppress(RuntimeError):
        run()
        return "taken"
    return "refused"


def views() -> Figures:
    """Whether `view` is refused after `transpose`, with `contiguous` between, and between projection and transpose."""
    x, heads, projection = _drawn(2, 7, 24), _drawn(2, 4, 7, 6), nn.Linear(24, 24)
    return {
        "transpose, view": _taken(lambda: heads.transpose(1, 2).view(2, 7, 24)),
        "transpose, contiguous, view": _taken(lambda: heads.transpose(1, 2).contiguous().view(2, 7, 24)),
        "projection, view, transpose": _taken(lambda: projection(x).view(2, 7, 4, 6).transpose(1, 2)),
    }


def reshaped() -> Figures:
    """What reshape straight to (B, H, T, K) puts in the place of each head's numbers."""
    qkv = torch.arange(2 * 7 * 72, dtype=torch.float32).reshape(2, 7, 72)
    right, wrong = split_heads(qkv, 4), mistakes.split_by_reshape(qkv, 4)
    return {
        "runs": str(right.shape == wrong.shape).lower(),
        "numbers in another place, %": 100 * float((right != wrong).float().mean()),
    }


PASSES = 10


def flicker() -> Figures:
    """Predictions of a trained model, read again and again in training mode and in evaluation mode."""
    model = open_model(models_root() / READER)
    batch = collate([model.cut.ids(encode(model.tokenizer, text).ids) for text in some_reviews()])
    mask = None if batch.token_mask is None else batch.token_mask.long()
    figures: Found = {}
    torch.manual_seed(0)
    for mode, training in (("training mode", True), ("evaluation mode", False)):
        model.network.train(training)
        with torch.no_grad():
            answers = torch.stack([model.network(batch.input_ids, mask).logits.softmax(-1)[:, 1] for _ in range(PASSES)])
        figures[f"{mode}: spread of a probability, points"] = 100 * float((answers.amax(0) - answers.amin(0)).mean())
        figures[f"{mode}: reviews whose label changes, %"] = 100 * mean(
            [float(len(set(column.tolist())) > 1) for column in (answers > 0.5).T]
        )
    return figures | {"reviews": len(batch.input_ids), "passes": PASSES}
