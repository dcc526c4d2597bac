"""Schedules held to those of PyTorch and transformers, and to what must hold of any."""

from itertools import pairwise

import pytest
import torch
from transformers import (
    get_constant_schedule_with_warmup,
    get_inverse_sqrt_schedule,
    get_linear_schedule_with_warmup,
)

from core.training.schedule import factor

SCHEDULES = ("one-cycle", "linear", "constant", "inverse-sqrt")


def factors(schedule: str, total: int, warmup_ratio: float) -> list[float]:
    return [factor(schedule, step, total, warmup_ratio) for step in range(total)]


def rates(make, n: int) -> list[float]:
    """The learning rate of n steps under a scheduler of another library, as a factor of 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, found = make(optimizer), []
    for step in range(n):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step < n - 1:
            scheduler.step()
    return found


@pytest.mark.parametrize("total", [2, 7, 100, 1003])
@pytest.mark.parametrize("warmup_ratio", [0.0, 0.03, 0.1, 0.3, 0.77])
def test_one_cycle_is_that_of_pytorch(total, warmup_ratio):
    def one_cycle(optimizer):
        return torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=1.0, total_steps=total, pct_start=warmup_ratio, cycle_momentum=False
        )

    assert factors("one-cycle", total, warmup_ratio) == pytest.approx(rates(one_cycle, total), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("total", [1, 7, 100])
@pytest.mark.parametrize("warmup_ratio", [0.0, 0.1, 0.25, 1.0])
@pytest.mark.parametrize(
    ("schedule", "make"),
    [
        ("linear", lambda optimizer, warmup, total: get_linear_schedule_with_warmup(optimizer, warmup, total)),
        ("constant", lambda optimizer, warmup, total: get_constant_schedule_with_warmup(optimizer, warmup)),
        ("inverse-sqrt", lambda optimizer, warmup, total: get_inverse_sqrt_schedule(optimizer, warmup)),
    ],
)
def test_the_others_are_those_of_transformers_without_its_first_step_of_rate_zero(schedule, make, total, warmup_ratio):
    warmup = int(warmup_ratio * total)
    idle, *theirs = rates(lambda optimizer: make(optimizer, warmup + 1, total + 1), total + 1)
    assert idle == 0.0
    assert factors(schedule, total, warmup_ratio) == pytest.approx(theirs)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("total", [1, 2, 3, 10, 11, 64, 999])
@pytest.mark.parametrize("warmup_ratio", [0.0, 0.05, 0.1, 1 / 3, 0.5, 0.9, 1.0])
def test_a_rate_rises_once_then_falls_to_the_last_step(schedule, total, warmup_ratio):
    found = factors(schedule, total, warmup_ratio)
    assert all(0 < value <= 1 for value in found)
    top = found.index(max(found))
    assert all(a <= b for a, b in pairwise(found[: top + 1]))
    assert all(a >= b for a, b in pairwise(found[top:]))
    assert top <= max(warmup_ratio * total, 1)
