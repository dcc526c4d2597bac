"""How long a training will take and how much memory, from a moment of its very network on this machine."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from core.config import SPECIAL_TOKENS, Architecture, LinearArchitecture, RunConfig
from core.data import tokenizer as tokenizers
from core.data.batches import Cut
from core.data.reviews import spread
from core.data.splits import SHARES
from core.networks.bilstm import BiLSTM
from core.networks.encoder import Encoder
from core.training import linear
from core.training.loop import Examples, adamw
from core.training.machine import Execution, checkpointing, n_parameters
from core.training.parts import tokens_at_once

SAMPLE = 1_000
"""Reviews whose tokens are counted."""
VOCABULARY = 2_000
"""Entries of the embedding that is tried: a larger one costs the optimiser alone, and that is counted by parameter."""
TOKENS, OPERATIONS = 2_048, 3e10
"""At most so many tokens of a batch are tried, and fewer where one layer would take more operations than that."""
REPEATS, REPEATED_S = 3, 0.2
"""A try is repeated so often, and until it has taken so long in all."""
BYTES_PER_PARAMETER = 20
"""Weight, gradient, both moments of Adam and the copy of the best epoch, in float32."""
MOST_TRIED = 2**31
"""Bytes that a try may take: it runs in the process of whoever asks, such as a page's server, which must outlive it."""


DRAWN = 300
"""Reviews that are made up to try the fits of a linear model on."""
BYTES_PER_CELL = 75
"""Of the matrix that a linear model is fitted to: its tokens and their runs, its value and place, here, times the ratios and in
liblinear. Processes of 3,000 and of 25,000 reviews of IMDB differ by so much by naive Bayes, and by a sixth more by TF-IDF."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What is known of the reviews before they are all read."""

    n: int
    n_classes: int
    tokens: Int[np.ndarray, "sample"]
    """Lengths of some of them."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a training is expected to take."""

    seconds: float
    """Of steps and validation; starting, reading and tokenising the data come on top."""
    memory_bytes: int
    """Of parameters, optimiser and the activations of a full batch, or of a part where it is computed in parts; Python and its
    libraries come on top."""
    n_parameters: int
    """Of a linear model at most."""
    steps: int
    """Of a linear model its fits."""
    execution: Execution


def sample(texts: Sequence[str], n_classes: int, vocab_size: int) -> Sample:
    """Counts the tokens of up to `SAMPLE` reviews, spread evenly, with a tokeniser trained on them alone."""
    drawn = [texts[i] for i in spread(len(texts), SAMPLE)]
    tokenizer = tokenizers.train(drawn, vocab_size)
    tokens = [len(encoding.ids) for encoding in tokenizer.encode_batch(drawn)]
    return Sample(n=len(texts), n_classes=n_classes, tokens=np.array(tokens))


def estimate(config: RunConfig, reviews: Sample) -> Estimate:
    """Tries the network that `config` describes with one layer and with two, and scales what they take to all of it.

    A linear model is tried on fewer reviews. ValueError if the configuration cannot run here, or if trying it would take more
    than `MOST_TRIED`.
    """
    if isinstance(config.model, LinearArchitecture):
        return _of_fits(config, config.model, reviews)
    execution, cut = Execution.of(config), Cut.of(config.model)
    lengths = np.array([len(cut.kept(n)) + len(cut.prefix) for n in reviews.tokens.tolist()])
    model = replace(config.model, n_classes=reviews.n_classes)
    parameters = _parameters(model)
    _refuse_large(model, execution, int(lengths.max()))
    steps = config.training.epochs * max(1, round(SHARES["train"] * reviews.n / config.training.batch_size))
    scored = ((config.training.epochs + 1) * SHARES["validation"] + SHARES["test"]) * reviews.n * lengths.mean()
    batch = config.training.batch_size * lengths.mean()
    at_once = tokens_at_once(model, execution.device)
    held = batch if at_once is None else min(batch, max(at_once, lengths.max()))
    step_s, scored_s, held_bytes, tried = _of_all_layers(config, model, execution, lengths)
    step_s += (parameters - tried) * _parameter_s(config, execution.device)
    return Estimate(
        seconds=steps * step_s + scored * scored_s,
        memory_bytes=round(BYTES_PER_PARAMETER * parameters + held * held_bytes),
        n_parameters=parameters,
        steps=steps,
        execution=execution,
    )


def _of_fits(config: RunConfig, model: LinearArchitecture, reviews: Sample) -> Estimate:
    """Fits made-up reviews, which are as long as these and whose tokens are as unequally frequent as words are."""
    draw, cut = np.random.default_rng(0), Cut.of(model)
    lengths = [len(cut.kept(n)) for n in draw.choice(reviews.tokens, DRAWN).tolist()]
    ids = [len(SPECIAL_TOKENS) + draw.zipf(1.2, n) % (model.vocab_size - len(SPECIAL_TOKENS)) for n in lengths]
    drawn = Examples(ids, np.arange(DRAWN) % reviews.n_classes)
    begun = time.perf_counter()
    names = tuple(map(str, range(reviews.n_classes)))
    tried = linear.untrained(replace(model, min_reviews=1), names, drawn)
    linear.fit(tried, drawn, Examples(ids[:1], drawn.labels[:1]), seed=0, emit=lambda event: None, stopped=lambda: False)
    times = SHARES["train"] * reviews.n / DRAWN
    return Estimate(
        seconds=times * (time.perf_counter() - begun),
        memory_bytes=round(times * BYTES_PER_CELL * linear.matrix(tried.network, ids).nnz),
        n_parameters=(model.n_features + 1) * reviews.n_classes,
        steps=config.epochs,
        execution=Execution.of(config),
    )


def network(model: Architecture, device: str) -> nn.Module:
    """A network of random weights; on the device "meta" it has none, and is there in no time."""
    with torch.device(device):
        return Encoder(model) if model.kind == "encoder" else BiLSTM(model)


def _parameters(model: Architecture) -> int:
    """Of all layers, which are alike: a network of a thousand of them is not built to be counted."""
    found = [n_parameters(network(replace(model, n_layers=n), "meta")) for n in range(1, min(2, model.n_layers) + 1)]
    return found[0] + (model.n_layers - 1) * (found[-1] - found[0])


def _refuse_large(model: Architecture, execution: Execution, longest: int) -> None:
    """Counts roughly what `_costs` would hold at once: the layers tried, and the batch that runs through them."""
    tried = _tried(model, min(2, model.n_layers))
    batch = max(TOKENS, 3 * longest)
    if tried.kind == "encoder":
        scores = 4 * tried.n_heads * longest if execution.backend == "eager" else 0
        per_token = 20 * tried.d_model + 4 * tried.d_ff + scores
    else:
        per_token = 30 * tried.d_hidden + 4 * tried.d_embedding
    needed = 16 * _parameters(tried) + 4 * tried.n_layers * batch * per_token
    if needed > MOST_TRIED:
        raise ValueError(
            f"this network of {_parameters(model):,} parameters is too large to be tried beside the page: it would take about "
            f"{needed / 2**30:,.0f} GiB, expected at most {MOST_TRIED / 2**30:.0f}; how long it takes shows once it is started"
        )


def _tried(model: Architecture, n_layers: int) -> Architecture:
    return replace(model, n_layers=n_layers, vocab_size=min(model.vocab_size, VOCABULARY))


def _of_all_layers(config: RunConfig, model: Architecture, execution: Execution, lengths: np.ndarray) -> Float[np.ndarray, "4"]:
    """Seconds of a training step; seconds of scoring and bytes kept for the backward pass, for one token; parameters."""
    found = []
    for n_layers in range(1, min(2, model.n_layers) + 1):
        found.append(_costs(config, _tried(model, n_layers), execution, lengths))
    first, layer = found[0], found[-1] - found[0]
    return first + (model.n_layers - 1) * np.maximum(layer, 0)


def _costs(config: RunConfig, tried: Architecture, execution: Execution, lengths: np.ndarray) -> Float[np.ndarray, "4"]:
    """The four of a small network; time at the mean length, memory at the greatest, which is when it is short."""
    net = network(tried, execution.device)
    if isinstance(net, Encoder):
        net.checkpointing = checkpointing(config)
    chosen = {} if execution.backend is None else {"backend": execution.backend}

    def loss(ids: Int[Tensor, "B T"]) -> Float[Tensor, ""]:
        with torch.autocast(execution.device, torch.bfloat16, enabled=execution.precision == "bfloat16"):
            logits = net.train()(ids, **chosen)[0]
        return F.cross_entropy(logits.float(), torch.zeros(len(ids), dtype=torch.long, device=ids.device))

    @torch.no_grad()
    def score(ids: Int[Tensor, "B T"]) -> None:
        net.eval()(ids)

    optimizer = adamw(net, config.training)

    def step(ids: Int[Tensor, "B T"]) -> float:
        optimizer.zero_grad()
        error = loss(ids)
        error.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return error.item()

    mean, longest = round(lengths.mean()), int(lengths.max())
    tokens = min(TOKENS, OPERATIONS / (6 * n_parameters(net)))
    n = min(config.training.batch_size, max(1, round(tokens / mean)))
    ids = _ids(n, mean, tried.vocab_size, execution.device)
    two, three = (_kept_bytes(loss, _ids(n, longest, tried.vocab_size, execution.device)) for n in (2, 3))
    return np.array([
        _seconds(lambda: step(ids), execution.device) * config.training.batch_size / n,
        _seconds(lambda: score(ids), execution.device) / ids.numel(),
        (three - two) / longest,  # which leaves out what is kept once, such as weights in another precision
        n_parameters(net),
    ])  # fmt: skip


def _ids(n: int, length: int, vocab_size: int, device: str) -> Int[Tensor, "B T"]:
    return torch.randint(len(SPECIAL_TOKENS), vocab_size, (n, length)).to(device)


def _seconds(run: Callable[[], object], device: str) -> float:
    """Median of a few runs, after one that warms up."""
    found: list[float] = []
    while len(found) <= REPEATS or sum(found[1:]) < REPEATED_S:
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found[1:])


def _kept_bytes(loss: Callable[[Tensor], Tensor], ids: Int[Tensor, "B T"]) -> int:
    """Bytes of all storages that the forward pass keeps for the backward pass."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # an operation that kept its own output would never be freed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss(ids)
    return sum(kept.values())


def _parameter_s(config: RunConfig, device: str) -> float:
    """Seconds that the optimiser and the clipping of the gradient take for one parameter."""
    net = nn.Linear(1024, 1024, bias=False, device=device)
    net.weight.grad = torch.ones_like(net.weight)
    optimizer = adamw(net, config.training)

    def step() -> None:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    return _seconds(step, device) / n_parameters(net)
