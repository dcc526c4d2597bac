from dataclasses import replace

from core.curves import Curve, curves, resumed, standing
from core.events import EpochFinished, Queued, Started, StepFinished, TrainingStarted


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


def begun(n: int) -> TrainingStarted:
    return TrainingStarted(
        n_parameters=1, n_train=2, n_validation=3, epochs=4, device="cpu", precision="float32", backend=None, step=n
    )


def test_steps_that_were_lost_are_no_part_of_a_curve():
    first = [Started(device="cpu"), begun(0), step(3, 0.7), EPOCH, step(5, 0.6), step(6, 0.5)]
    again = [Queued(ahead=0), begun(5), step(6, 0.4), step(7, 0.3)]
    anew = [begun(0), step(1, 0.9)]
    assert curves(standing(first + again))["loss"] == Curve(steps=(3, 5, 6, 7), values=(0.7, 0.6, 0.4, 0.3), resumed=(5,))
    assert "val_loss" in curves(standing(first + again))
    assert curves(standing(first + again + anew)).keys() == {"loss", "lr", "gradient_norm", "reviews_per_s"}
    assert standing(standing(first + again) + anew) == standing(first + again + anew)
    assert standing(first) == first


def test_numbers_that_are_not_finite_are_counted_where_there_are_any():
    assert "non_finite" not in curves([step(1, 0.7), step(2, 0.7)])
    assert curves([step(1, 0.7), replace(step(2, 0.7), non_finite=3)])["non_finite"].values == (0.0, 3.0)


def test_a_mark_stands_where_a_process_went_on_and_not_where_what_came_of_it_was_lost():
    assert resumed([begun(0), step(3, 0.7)]) == ()
    assert curves([begun(0), step(3, 0.7), begun(2), step(4, 0.6)])["loss"].resumed == (2,)
    assert resumed([begun(0), step(3, 0.7), begun(2), begun(2), step(4, 0.6), begun(4)]) == (2, 4)
    assert resumed([begun(0), begun(4), begun(2)]) == (2,)  # from an earlier checkpoint
    assert resumed([begun(0), begun(4), begun(0), step(5, 0.6)]) == ()  # anew
