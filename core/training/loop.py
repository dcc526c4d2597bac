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

from core.catalog import BACKENDS
from core.config import RunConfig, TrainingConfig
from core.data.batches import Store, shuffled_steps
from core.evaluation.scoring import score
from core.events import EpochFinished, Event, StepFinished
from core.jobs import Ended, patient
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
    The reviews lie on the device, and what a step gives is read from a GPU where it is told: until then, nothing waits.
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
        self.prepared = self.accelerator.prepare(network)
        self.prepared.train()
        self.optimizer = adamw(network, config.training)
        self.diverged = torch.zeros((), device=self.accelerator.device)
        """1 from the first step on whose loss or gradient is no finite number."""
        self.waits = execution.device != "cpu"
        """Whether the device is waited for where a number is read from it."""
        store = Store.of(train.ids, self.accelerator.device, few_shapes=self.waits)
        packs = execution.backend is not None and BACKENDS[execution.backend].packs(execution.device)
        self.batch, self.lengths = store.packed if packs else store.padded, store.lengths
        self.largest, self.best = LargestLogit(), _Best(network)
        self.step, self.rates = 0, Rates()
        self.losses: list[float] = []
        """Of the steps of the epoch that is not over, but for the last ones, which are `unread`."""
        self.unread: list[Float[Tensor, "2"]] = []
        """Of each such step, loss and norm of the gradient, on the device."""
        self.epochs: list[EpochFinished] = []
        self.started = time.perf_counter()

    @property
    def done(self) -> bool:
        """Whether the last step is made."""
        return self.step == len(self.plan)

    @property
    def is_last_of_epoch(self) -> bool:
        """Whether the step made last was its epoch's last one."""
        return self._ends_epoch(self.step - 1)

    @property
    def is_before_last_of_epoch(self) -> bool:
        """Whether the next step is its epoch's last one."""
        return not self.done and self._ends_epoch(self.step)

    def _ends_epoch(self, step: int) -> bool:
        return step + 1 == len(self.plan) or self.plan[step][0] != self.plan[step + 1][0]

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first step on, without those between two processes."""
        return time.perf_counter() - self.started

    def advance(self, watched: bool = True) -> StepFinished:
        """Trains on the next batch, and tells what that gave."""
        self.take(watched)
        return self.tell(watched)

    def take(self, watched: bool) -> None:
        """Trains on the next batch, whose parts add up to one gradient. `watched`: look at the attention logits of one, too.

        Nothing is read from the device. From the first step on whose loss or gradient is no finite number, no weight changes.
        """
        start, (_, parts) = time.perf_counter(), self.plan[self.step]
        if not self.accelerator.is_main_process:  # a checkpoint holds the first one's random numbers
            torch.manual_seed(self.training.seed + (self.accelerator.process_index << 32) + (self.step << 40))
        self.optimizer.zero_grad()
        losses, n = [], sum(map(len, parts))
        for part in parts:
            with self.largest.watching(self.network) if watched and part is parts[0] else nullcontext():
                error = self._loss(part) * (len(part) / n)
            self.accelerator.backward(error)
            losses.append(error.detach().double())
        limit = math.inf if self.training.clip_norm is None else self.training.clip_norm
        norm = nn.utils.clip_grad_norm_(self.prepared.parameters(), limit)
        self._update(self._over_all("mean", torch.stack(losses).sum()), norm.double())
        self.rates.seconds += time.perf_counter() - start

    def _loss(self, indices: Int[np.ndarray, "_"]) -> Float[Tensor, ""]:
        """Mean cross-entropy of these reviews, in float32; of several processes, the mean of what each gives for its share."""
        self.rates.reviews += len(indices)
        self.rates.tokens += int(self.lengths[indices].sum())
        own = indices[self.accelerator.process_index :: self.accelerator.num_processes]
        weight = self.accelerator.num_processes * len(own) / len(indices)
        own = own if len(own) else indices[:1]  # without weight: what all do together needs each
        labels = torch.from_numpy(self.train.labels[own]).to(self.accelerator.device, non_blocking=True)
        chosen = {} if self.execution.backend is None else {"backend": self.execution.backend}
        with torch.autocast(self.execution.device, torch.bfloat16, enabled=self.execution.precision == "bfloat16"):
            logits = self.prepared(**self.batch(own).arguments, **chosen).logits[: len(own)].float()
            return weight * F.cross_entropy(logits, labels, label_smoothing=self.training.label_smoothing)

    def _update(self, loss: Float[Tensor, ""], norm: Float[Tensor, ""]) -> None:
        """Takes the step, unless it or one before diverged: the optimiser asks the device, as where a `GradScaler` is used."""
        found = torch.stack([loss, norm])
        self.diverged = self.diverged.maximum((~found.isfinite()).any().float())
        self.optimizer.found_inf = self.diverged  # pyright: ignore[reportAttributeAccessIssue]
        for group in self.optimizer.param_groups:
            group["lr"] = self._lr(self.step)
        self.optimizer.step()
        self.unread.append(found)
        self.step += 1

    def _lr(self, step: int) -> float:
        return self.training.lr * factor(self.training.schedule, step, len(self.plan), self.training.warmup_ratio)

    def tell(self, watched: bool) -> StepFinished:
        """The last step, or the first that diverged of those that are unread; a GPU is waited for."""
        start, before = time.perf_counter(), self.step - len(self.unread)
        found = torch.stack(self.unread).tolist()
        self.rates.seconds += time.perf_counter() - start
        self.losses += [loss for loss, _ in found]
        self.unread = []
        last = next((i for i, values in enumerate(found) if not np.isfinite(values).all()), len(found) - 1)
        step, (loss, norm) = before + last, found[last]
        return StepFinished(
            epoch=self.plan[step][0], step=step + 1, total_steps=len(self.plan), loss=loss, lr=self._lr(step),
            gradient_norm=norm, largest_logit=self.largest.value if watched else None,
            non_finite=0 if math.isfinite(norm) else non_finite(self.network),
            reviews_per_s=self.rates.reviews_per_s, tokens_per_s=self.rates.tokens_per_s,
        )  # fmt: skip

    def _over_all(self, reduction: str, value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The mean or the sum over all processes, which is what each of them then goes by."""
        if self.accelerator.num_processes == 1:
            return value
        reduced = self.accelerator.reduce(value, reduction)
        assert isinstance(reduced, Tensor)
        return reduced

    def agreed(self, *said: bool) -> list[bool]:
        """Of each, whether any process says so."""
        if self.accelerator.num_processes == 1:
            return list(said)
        return (self._over_all("sum", torch.tensor(said, device=self.accelerator.device).float()) > 0).tolist()

    def validate(self) -> EpochFinished:
        """Ends an epoch: measures the network, and keeps its weights if they are the best so far."""
        assert not self.unread, "the last step of an epoch is told"
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
        assert not self.unread, "what is stored is told before"
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
    trainer, last_told = Trainer(network, config, train, validation, execution), 0.0
    if state is not None:
        trainer.load_state_dict(state)
    checkpoints = checkpoints or Checkpoints()
    with patient() as asked_to_end:
        while True:
            stopping, ending = trainer.agreed(stopped(), asked_to_end())
            if stopping or ending or trainer.done:
                break
            told = time.perf_counter() - last_told > SECONDS_BETWEEN_EVENTS or trainer.is_before_last_of_epoch
            _advance(trainer, config, emit, told)
            last_told = time.perf_counter() if told else last_told
            if not trainer.unread and checkpoints.due():
                checkpoints.write(trainer.state_dict())
        if trainer.unread:
            _refuse_divergence(trainer.tell(watched=False), config)
        if trainer.step:  # storing and measuring may be interrupted, too
            checkpoints.write(trainer.state_dict())
        if ending:
            raise Ended(f"the system asked it to end after step {trainer.step}")
    if trainer.done:
        _refuse_worse_than_guessing(trainer.epochs[trainer.best.epoch - 1], config)
    trainer.best.restore()
    return Fitted(rates=trainer.rates, epochs=trainer.epochs, best_epoch=trainer.best.epoch, stopped=not trainer.done)


def _advance(trainer: Trainer, config: RunConfig, emit: Callable[[Event], None], told: bool) -> None:
    """The next step, and the end of its epoch. `told`: emit it, too; a step of a GPU is not read otherwise."""
    trainer.take(told)
    if trainer.waits and not told:
        return
    step = trainer.tell(told)
    if told or not _is_finite(step):
        emit(step)
    _refuse_divergence(step, config)
    if trainer.is_last_of_epoch:
        epoch = trainer.validate()
        emit(epoch)
        _refuse_divergence(step, config, epoch.val_loss)  # of which the step's own loss knows nothing yet


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
