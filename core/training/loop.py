"""One training loop for every network, over Accelerate (device and mixed precision)."""

import copy
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from jaxtyping import Float, Int
from torch import Tensor, nn

from core.config import RunConfig, TrainingConfig
from core.data.batches import Batch, collate, token_budget_batches
from core.evaluation.scoring import score
from core.records import EpochFinished, Event, StepFinished
from core.training.machine import Execution
from core.training.schedule import factor
from core.training.watch import LargestLogit

SECONDS_BETWEEN_EVENTS = 0.5


class TrainingDiverged(ValueError):
    """The loss is no number any more."""


@dataclass(frozen=True)
class Examples:
    """Reviews ready for the network: the ids that it reads, and their classes."""

    ids: list[Int[np.ndarray, "_"]]
    labels: Int[np.ndarray, "n"]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class Rates:
    """Counts and seconds of training proper: the clock stands still in validation."""

    reviews: int = 0
    tokens: int = 0
    seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    def resume(self) -> None:
        """Starts the clock again."""
        self.started = time.perf_counter()

    def add(self, batch: Batch) -> None:
        """Counts a batch and brings the clock up to date."""
        now = time.perf_counter()
        self.seconds, self.started = self.seconds + now - self.started, now
        self.reviews += len(batch.input_ids)
        self.tokens += batch.n_tokens

    @property
    def reviews_per_s(self) -> float:
        """Reviews per second."""
        return self.reviews / max(self.seconds, 1e-9)

    @property
    def tokens_per_s(self) -> float:
        """Real tokens per second."""
        return self.tokens / max(self.seconds, 1e-9)


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What a fit leaves behind; the network holds the weights of the best epoch."""

    rates: Rates
    epochs: list[EpochFinished]
    best_epoch: int
    """0 where the fit was stopped within its first epoch: then the weights are the last ones."""
    stopped: bool
    """Whether somebody asked the fit to end before its last step."""


def fit(
    network: nn.Module,
    config: RunConfig,
    train: Examples,
    validation: Examples,
    *,
    execution: Execution,
    emit: Callable[[Event], None],
    stopped: Callable[[], bool] = lambda: False,
) -> Fitted:
    """Trains `network` in place and leaves it with the weights of the epoch that was most accurate on `validation`.

    `stopped` is asked before each step; once it says yes, the fit ends with what it has.
    Raises TrainingDiverged when the loss is no finite number. The same seed gives the same weights on a CPU.
    """
    training = config.training
    rng = np.random.default_rng(training.seed)
    lengths = np.array([len(ids) for ids in train.ids], dtype=np.int64)
    epochs = [token_budget_batches(lengths, round(training.batch_size * lengths.mean()), rng) for _ in range(training.epochs)]
    total_steps = sum(len(batches) for batches in epochs)
    accelerator = Accelerator(cpu=execution.device == "cpu")
    optimizer = adamw(network, training)
    prepared, optimizer = accelerator.prepare(network, optimizer)
    step, rates, finished, best, largest = 0, Rates(), [], _Best(network), LargestLogit()
    start = time.perf_counter()
    for epoch, batches in enumerate(epochs, 1):
        prepared.train()
        rates.resume()
        losses, last_event = [], 0.0
        for indices in batches:
            if stopped():
                best.restore()
                return Fitted(rates=rates, epochs=finished, best_epoch=best.epoch, stopped=True)
            lr = training.lr * factor(training.schedule, step, total_steps, training.warmup_ratio)
            batch = collate([train.ids[i] for i in indices])
            labels = torch.from_numpy(train.labels[indices])
            told = time.perf_counter() - last_event > SECONDS_BETWEEN_EVENTS or step + 1 == total_steps
            with (
                torch.autocast(execution.device, torch.bfloat16, enabled=execution.precision == "bfloat16"),
                largest.watching(network) if told else nullcontext(),
            ):
                error = _loss(accelerator, prepared, batch, labels, training, execution.backend)
            norm = _update(accelerator, prepared, optimizer, error, lr, training)
            step, loss = step + 1, error.item()
            _refuse_divergence(loss, step, lr, training)
            losses.append(loss)
            rates.add(batch)
            if told:
                last_event = time.perf_counter()
                emit(StepFinished(
                    epoch=epoch, step=step, total_steps=total_steps, loss=loss, lr=lr, gradient_norm=norm,
                    largest_logit=largest.value, reviews_per_s=rates.reviews_per_s, tokens_per_s=rates.tokens_per_s,
                ))  # fmt: skip
        val_loss, val_accuracy = _validate(network, validation)
        _refuse_divergence(val_loss, step, lr, training)  # of which the last step's loss knows nothing yet
        finished.append(EpochFinished(
            epoch=epoch, step=step, train_loss=float(np.mean(losses)), val_loss=val_loss, val_accuracy=val_accuracy,
            elapsed_s=time.perf_counter() - start,
        ))  # fmt: skip
        emit(finished[-1])
        best.offer(finished[-1])
    best.restore()
    return Fitted(rates=rates, epochs=finished, best_epoch=best.epoch, stopped=False)


def adamw(network: nn.Module, training: TrainingConfig) -> torch.optim.AdamW:
    """AdamW that decays matrices alone: biases, layer norms and embeddings of rare tokens should not shrink to nothing."""
    embeddings = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    decayed = [p for p in network.parameters() if p.ndim > 1 and id(p) not in embeddings]
    others = [p for p in network.parameters() if p.ndim <= 1 or id(p) in embeddings]
    groups = [{"params": decayed, "weight_decay": training.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.lr, betas=training.betas, fused=True)


def _loss(
    accelerator: Accelerator, network: nn.Module, batch: Batch, labels: Tensor, training: TrainingConfig, backend: str | None
) -> Float[Tensor, ""]:
    """Cross-entropy of a batch, in float32."""
    mask = None if batch.token_mask is None else batch.token_mask.long().to(accelerator.device)
    chosen = {} if backend is None else {"backend": backend}
    logits = network(batch.input_ids.to(accelerator.device), mask, **chosen).logits.float()
    return F.cross_entropy(logits, labels.to(accelerator.device), label_smoothing=training.label_smoothing)


def _update(
    accelerator: Accelerator,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Float[Tensor, ""],
    lr: float,
    training: TrainingConfig,
) -> float:
    """One step of the optimiser; the norm of the gradient before it was clipped."""
    optimizer.zero_grad()
    accelerator.backward(loss)
    norm = accelerator.clip_grad_norm_(network.parameters(), math.inf if training.clip_norm is None else training.clip_norm)
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()
    return float(norm)


def _refuse_divergence(loss: float, step: int, lr: float, training: TrainingConfig) -> None:
    if not math.isfinite(loss):
        raise TrainingDiverged(
            f"the loss became {loss} at step {step} with learning rate {lr:.2g}; "
            f"lower the learning rate (now at most {training.lr:g})"
            + ("" if training.warmup_ratio else ", use a warm-up")
            + ("" if training.clip_norm else ", clip the gradient")
        )


def _validate(network: nn.Module, validation: Examples) -> tuple[float, float]:
    logits = torch.from_numpy(score(network, validation.ids))
    labels = torch.from_numpy(validation.labels)
    return float(F.cross_entropy(logits, labels)), float((logits.argmax(-1) == labels).float().mean())


class _Best:
    """A copy of the weights of the best epoch: the most accurate, and of equals the one of lower loss."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.rank = (-1.0, 0.0)
        self.epoch = 0
        self.weights: dict[str, Tensor] | None = None

    def offer(self, finished: EpochFinished) -> None:
        rank = (finished.val_accuracy, -finished.val_loss)
        if rank > self.rank:
            self.rank, self.epoch = rank, finished.epoch
            self.weights = copy.deepcopy(self.network.state_dict())

    def restore(self) -> None:
        """Gives the network its best weights back; before the first epoch is over, those it has are all there are."""
        if self.weights is not None:
            self.network.load_state_dict(self.weights)
