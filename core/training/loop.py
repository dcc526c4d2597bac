"""One training loop for every network, over Accelerate (device, mixed precision, several processes)."""

import copy
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from jaxtyping import Float, Int
from torch import Tensor, nn

from core.config import RunConfig, TrainingConfig
from core.data.batches import collate, shuffled_steps
from core.evaluation.scoring import score
from core.jobs import Ended, patient
from core.records import EpochFinished, Event, StepFinished
from core.training.checkpoint import Checkpoints
from core.training.divergence import described, diverged, explained
from core.training.machine import Execution
from core.training.parts import tokens_at_once
from core.training.schedule import factor
from core.training.watch import LargestLogit, non_finite

SECONDS_BETWEEN_EVENTS = 0.5


class TrainingDiverged(ValueError):
    """Loss or gradient is no number any more, or the loss of the best weights is far above that of guessing."""

    kind = "diverged"


@dataclass(frozen=True)
class Examples:
    """Reviews ready for the network: the ids that it reads, and their classes."""

    ids: list[Int[np.ndarray, "_"]]
    labels: Int[np.ndarray, "n"]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class Rates:
    """Counts and seconds of training proper: of the steps alone."""

    reviews: int = 0
    tokens: int = 0
    seconds: float = 0.0

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


class Trainer:
    """A training between two steps: all that the next one depends on, and the step itself.

    `state_dict` and `load_state_dict` carry it into another process, which on a CPU goes on to the bit as this one would have.
    Several processes, as `torchrun` starts them, share each batch and take each step together; their loss is that of one.
    """

    def __init__(
        self, network: nn.Module, config: RunConfig, train: Examples, validation: Examples, execution: Execution
    ) -> None:
        self.network, self.training, self.execution = network, config.training, execution
        self.train, self.validation = train, validation
        self.plan = plan(train, config.training, tokens_at_once(config.model, execution.device))
        patience = InitProcessGroupKwargs(timeout=timedelta(days=7))  # others wait while the first one waits for the device
        # precision is this loop's own: what the environment or an earlier Trainer of this process chose is not asked
        self.accelerator = Accelerator(cpu=execution.device == "cpu", mixed_precision="no", kwargs_handlers=[patience])
        self.prepared, self.optimizer = self.accelerator.prepare(network, adamw(network, config.training))
        self.prepared.train()
        self.largest, self.best = LargestLogit(), _Best(network)
        self.step, self.rates = 0, Rates()
        self.losses: list[float] = []
        """Of the steps of the epoch that is not over."""
        self.epochs: list[EpochFinished] = []
        self.started = time.perf_counter()
        self._draw_apart()

    @property
    def done(self) -> bool:
        """Whether the last step is made."""
        return self.step == len(self.plan)

    @property
    def is_last_of_epoch(self) -> bool:
        """Whether the step made last was its epoch's last one."""
        return self.done or self.plan[self.step - 1][0] != self.plan[self.step][0]

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first step on, without those between two processes."""
        return time.perf_counter() - self.started

    def advance(self, watched: bool = True) -> StepFinished:
        """Trains on the next batch, whose parts add up to one gradient. `watched`: look at the attention logits of one, too.

        A step whose loss or gradient is no finite number changes no weight.
        """
        start, (epoch, parts) = time.perf_counter(), self.plan[self.step]
        lr = self.training.lr * factor(self.training.schedule, self.step, len(self.plan), self.training.warmup_ratio)
        self.optimizer.zero_grad()
        n, loss = sum(map(len, parts)), 0.0
        for part in parts:
            with self.largest.watching(self.network) if watched and part is parts[0] else nullcontext():
                error = self._loss(part) * (len(part) / n)
            self.accelerator.backward(error)
            loss += self._over_all("mean", error.item())[0]
        limit = math.inf if self.training.clip_norm is None else self.training.clip_norm
        norm = float(self.accelerator.clip_grad_norm_(self.prepared.parameters(), limit))
        if math.isfinite(norm) and math.isfinite(loss):
            self._update(lr)
        self.step += 1
        self.losses.append(loss)
        self.rates.seconds += time.perf_counter() - start
        return StepFinished(
            epoch=epoch, step=self.step, total_steps=len(self.plan), loss=loss, lr=lr, gradient_norm=norm,
            largest_logit=self.largest.value if watched else None,
            non_finite=0 if math.isfinite(norm) else non_finite(self.network),
            reviews_per_s=self.rates.reviews_per_s, tokens_per_s=self.rates.tokens_per_s,
        )  # fmt: skip

    def _loss(self, indices: Int[np.ndarray, "_"]) -> Float[Tensor, ""]:
        """Mean cross-entropy of these reviews, in float32; of several processes, the mean of what each gives for its share."""
        self.rates.reviews += len(indices)
        self.rates.tokens += sum(len(self.train.ids[i]) for i in indices)
        own = indices[self.accelerator.process_index :: self.accelerator.num_processes]
        weight = self.accelerator.num_processes * len(own) / len(indices)
        own = own if len(own) else indices[:1]  # without weight: what all do together needs each
        batch = collate([self.train.ids[i] for i in own])
        device, backend = self.accelerator.device, self.execution.backend
        mask = None if batch.token_mask is None else batch.token_mask.long().to(device)
        with torch.autocast(self.execution.device, torch.bfloat16, enabled=self.execution.precision == "bfloat16"):
            chosen = {} if backend is None else {"backend": backend}
            logits = self.prepared(batch.input_ids.to(device), mask, **chosen).logits.float()
            labels = torch.from_numpy(self.train.labels[own]).to(device)
            return weight * F.cross_entropy(logits, labels, label_smoothing=self.training.label_smoothing)

    def _over_all(self, reduction: str, *values: float) -> list[float]:
        """The mean or the sum of each value over all processes, which is what each of them then goes by."""
        if self.accelerator.num_processes == 1:
            return list(values)
        return self.accelerator.reduce(torch.tensor(values, device=self.accelerator.device), reduction).tolist()

    def agreed(self, *said: bool) -> list[bool]:
        """Of each, whether any process says so."""
        return [total > 0 for total in self._over_all("sum", *map(float, said))]

    def _update(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()

    def validate(self) -> EpochFinished:
        """Ends an epoch: measures the network, and keeps its weights if they are the best so far."""
        logits, labels = torch.from_numpy(score(self.network, self.validation.ids)), torch.from_numpy(self.validation.labels)
        finished = EpochFinished(
            epoch=self.plan[self.step - 1][0], step=self.step, train_loss=float(np.mean(self.losses)),
            val_loss=float(F.cross_entropy(logits, labels)),
            val_accuracy=float((logits.argmax(-1) == labels).float().mean()), elapsed_s=self.elapsed_s,
        )  # fmt: skip
        self.losses = []
        self.epochs.append(finished)
        self.best.offer(finished)
        return finished

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, random numbers, place in the plan and all that was counted, to be stored by a checkpoint."""
        random = {"cpu": torch.get_rng_state()}
        if self.execution.device == "cuda":
            random["cuda"] = torch.cuda.get_rng_state()
        return {
            "step": self.step,
            "execution": asdict(self.execution),
            "elapsed_s": self.elapsed_s,
            "losses": self.losses,
            "rates": asdict(self.rates),
            "epochs": [asdict(epoch) for epoch in self.epochs],
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best.state_dict(),
            "random": random,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from `state`, of a training with the same configuration and the same reviews."""
        self.step, self.losses = state["step"], list(state["losses"])
        self.started = time.perf_counter() - state["elapsed_s"]
        self.rates = Rates(**state["rates"])
        self.epochs = [EpochFinished(**epoch) for epoch in state["epochs"]]
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.best.load_state_dict(state["best"])
        torch.set_rng_state(state["random"]["cpu"])
        if "cuda" in state["random"]:
            torch.cuda.set_rng_state(state["random"]["cuda"])
        self._draw_apart()

    def _draw_apart(self) -> None:
        """Gives each process but the first, whose numbers are stored, random numbers of its own."""
        if not self.accelerator.is_main_process:
            torch.manual_seed(self.training.seed + (self.accelerator.process_index << 32) + (self.step << 40))


def plan(train: Examples, training: TrainingConfig, at_once: int | None = None) -> list[tuple[int, list[Int[np.ndarray, "_"]]]]:
    """Every step of a training in order: its epoch, from 1, and the reviews of its batch, in parts of tokens `at_once`."""
    rng = np.random.default_rng(training.seed)
    lengths = np.array([len(ids) for ids in train.ids], dtype=np.int64)
    budget = round(training.batch_size * lengths.mean())
    epochs = range(1, training.epochs + 1)
    return [(epoch, parts) for epoch in epochs for parts in shuffled_steps(lengths, budget, rng, at_once)]


def fit(
    network: nn.Module,
    config: RunConfig,
    train: Examples,
    validation: Examples,
    *,
    execution: Execution,
    emit: Callable[[Event], None],
    stopped: Callable[[], bool] = lambda: False,
    checkpoints: Checkpoints | None = None,
    state: dict[str, Any] | None = None,
) -> Fitted:
    """Trains `network` in place and leaves it with the weights of the epoch that was most accurate on `validation`.

    `stopped` is asked before each step; once it says yes, the fit ends with what it has. It begins where `state` was taken.
    Raises TrainingDiverged when loss or gradient is no finite number, and at the end where the best weights are far worse than
    guessing; Ended, with a checkpoint of the last step, where the system asks the process to end. The same seed gives the same
    weights on a CPU.
    """
    trainer, last_event = Trainer(network, config, train, validation, execution), 0.0
    if state is not None:
        trainer.load_state_dict(state)
    checkpoints = checkpoints or Checkpoints()
    with patient() as asked_to_end:
        while True:
            stopping, ending = trainer.agreed(stopped(), asked_to_end())
            if stopping or ending or trainer.done:
                if trainer.step:  # storing and measuring may be interrupted, too
                    checkpoints.write(trainer.state_dict())
                if ending:
                    raise Ended(f"the system asked it to end after step {trainer.step}")
                break
            told = time.perf_counter() - last_event > SECONDS_BETWEEN_EVENTS or trainer.step + 1 == len(trainer.plan)
            step = trainer.advance(told)
            if told or not _is_finite(step):
                last_event = time.perf_counter()
                emit(step)
            _refuse_divergence(step, config)
            if trainer.is_last_of_epoch:
                epoch = trainer.validate()
                emit(epoch)
                _refuse_divergence(step, config, epoch.val_loss)  # of which the step's own loss knows nothing yet
            if checkpoints.due():
                checkpoints.write(trainer.state_dict())
    if trainer.done:
        _refuse_worse_than_guessing(trainer.epochs[trainer.best.epoch - 1], config)
    trainer.best.restore()
    return Fitted(rates=trainer.rates, epochs=trainer.epochs, best_epoch=trainer.best.epoch, stopped=not trainer.done)


def adamw(network: nn.Module, training: TrainingConfig) -> torch.optim.AdamW:
    """AdamW that decays matrices alone: biases, layer norms and embeddings of rare tokens should not shrink to nothing."""
    embeddings = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    decayed = [p for p in network.parameters() if p.ndim > 1 and id(p) not in embeddings]
    others = [p for p in network.parameters() if p.ndim <= 1 or id(p) in embeddings]
    groups = [{"params": decayed, "weight_decay": training.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.lr, betas=training.betas, fused=True)


def _is_finite(step: StepFinished) -> bool:
    return math.isfinite(step.loss) and math.isfinite(step.gradient_norm)


def _refuse_divergence(step: StepFinished, config: RunConfig, val_loss: float = 0.0) -> None:
    if _is_finite(step) and math.isfinite(val_loss):
        return
    loss = step.loss if math.isfinite(val_loss) else val_loss
    what = f"the gradient became {step.gradient_norm}" if math.isfinite(loss) else f"the loss became {loss}"
    raise TrainingDiverged(explained(f"{what} at step {step.step} with learning rate {step.lr:.2g}", config))


def _refuse_worse_than_guessing(kept: EpochFinished, config: RunConfig) -> None:
    if diverged(kept, config.model.n_classes):
        raise TrainingDiverged(described(kept, config, config.model.n_classes))


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

    def state_dict(self) -> dict[str, Any]:
        return {"rank": self.rank, "epoch": self.epoch, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rank, self.epoch, self.weights = tuple(state["rank"]), state["epoch"], state["weights"]
