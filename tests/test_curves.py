from core.curves import Curve, curves
from core.records import EpochFinished, Queued, StepFinished


def step(n: int, loss: float, largest_logit: float | None = None) -> StepFinished:
    return StepFinished(
        epoch=1, step=n, total_steps=9, loss=loss, lr=0.1 * n, gradient_norm=2.0, largest_logit=largest_logit,
        reviews_per_s=50.0, tokens_per_s=9000.0,
    )  # fmt: skip


EPOCH = EpochFinished(epoch=1, step=4, train_loss=0.6, val_loss=0.5, val_accuracy=0.75, elapsed_s=1.0)


def test_each_quantity_is_at_its_steps():
    found = curves([Queued(ahead=1), step(1, 0.7), step(3, 0.6), EPOCH])
    assert found["loss"] == Curve(steps=(1, 3), values=(0.7, 0.6))
    assert found["val_accuracy"] == Curve(steps=(4,), values=(0.75,))
    assert found["val_loss"].values == (0.5,) and found["train_loss"].values == (0.6,)


def test_what_a_run_never_had_has_no_curve():
    assert "largest_logit" not in curves([step(1, 0.7)])
    assert curves([step(1, 0.7, 3.0), step(2, 0.7)])["largest_logit"] == Curve(steps=(1,), values=(3.0,))
    assert curves([]) == {}
