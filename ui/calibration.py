"""How far probabilities can be trusted: curves, sentences, and what a threshold brings."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core.evaluation.calibration import THRESHOLDS, Asked, asked, best_threshold, calibration_bins, calibration_error
from core.evaluation.predictions import Predictions
from core.figures.calibration import calibration_curve, confidence_histogram, threshold_curve
from core.figures.labels import interval
from core.records import CalibrationBin, Estimate
from core.statistics import share
from ui import compare, controls, export, loaders, markdown, panels

NOTES = (
    "Test reviews. Confidence is the probability of the answer given, in ten bins of equal width, from the least that an "
    "answer can have to 100%; bars are Wilson's 95% intervals. The calibration error is the mean distance between confidence "
    "and accuracy over the bins, weighted by their reviews (Guo et al. 2017). Chance gives one even to a model that is right "
    "exactly as often as it says: of 100 such models, 95 stay below the figure given."
)


def answers(names: Sequence[str]) -> dict[str, Predictions]:
    """The test answers of each model, by name; it is said of which there are none, and why."""
    found = {}
    for name in names:
        with panels.refusals():
            found[name] = loaders.predictions(name)
    return found


def curves(found: Mapping[str, Predictions]) -> None:
    """The calibration curves and a sentence on each."""
    titles = {name: loaders.model_title(name) for name in found}
    bins = {titles[name]: calibration_bins(answers) for name, answers in found.items()}
    chart, said = calibration_curve(bins), [finding(titles[name], answers) for name, answers in found.items()]
    panels.chart(chart, key="calibration_curve", alt="Accuracy against confidence")
    for sentence in said:
        st.markdown(markdown.literal(sentence))
    st.caption(NOTES)
    export.downloads(
        export.Export(
            title="Calibration", table=bin_rows(bins), of=export.of_models(list(found)), said=said, notes=[NOTES],
            charts={"Accuracy against confidence": chart},
        ),
        "calibration_bins",
    )  # fmt: skip


def bin_rows(bins: Mapping[str, Sequence[CalibrationBin]]) -> pd.DataFrame:
    """A row for each model and bin, shares in percent; a bin without answers has none."""
    return pd.DataFrame([
        {
            "model": title, "confidence from": 100 * one.low, "confidence to": 100 * one.high, "n": one.n,
            "mean confidence": one.confidence and 100 * one.confidence, "accuracy": one.accuracy and 100 * one.accuracy.value,
            "from": one.accuracy and 100 * one.accuracy.low, "to": one.accuracy and 100 * one.accuracy.high,
        }
        for title, row in bins.items()
        for one in row
    ])  # fmt: skip


def finding(model: str, found: Predictions) -> str:
    """Whether a model is right as often as it says, or how it errs."""
    error, sure, right = calibration_error(found), float(found.confidence.mean()), share(int(found.correct.sum()), len(found))
    assert right is not None
    said = f"of which chance alone would make up to {error.by_chance:.1%}"
    if error.value > error.by_chance:
        said += f": it is {_fault(sure - right.value, error.value)}"
    else:
        said += ": it may well be right as often as it says"
    return (
        f"{model}: {sure:.1%} sure on average, and right in {right.value:.1%} of {len(found):,} reviews "
        f"({interval(right.low, right.high)}); calibration error {error.value:.1%}, {said}."
    )


def _fault(gap: float, error: float) -> str:
    """`gap` is mean confidence minus accuracy; it is near `error` where a model errs in one way alone."""
    if abs(gap) < error / 2:
        return "too sure of some answers and not sure enough of others"
    return "too sure" if gap > 0 else "not sure enough"


def closer(name: str, found: Predictions) -> None:
    """With what confidence a model answered, and what becomes of a class if another probability is asked of it.

    A threshold is to be chosen on the validation side, and its figures are those of the test side. ValueError without the
    answers of the validation side.
    """
    validation = loaders.predictions(name, "validation")
    class_id, threshold = _asked(name, found)
    best = best_threshold(validation, class_id)
    cells = st.grid(2, min_column_width=320, gap="large")
    with cells.cell():
        chart = confidence_histogram(found.confidence, found.correct, found.n_classes)
        panels.chart(chart, key="calibration_histogram", alt=f"Confidence of {loaders.model_title(name)}")
        st.caption("Test reviews: how sure it was of its right answers and of its wrong ones.")
    with cells.cell():
        class_name = loaders.label_names(name, found.n_classes)[class_id]
        chart = threshold_curve(THRESHOLDS, _along(validation, class_id), threshold, class_name)
        panels.chart(chart, key="calibration_thresholds", alt="Precision and recall")
        st.caption(f"Validation reviews, on which a threshold is to be chosen: F1 is largest at {best:.2f}.")
    rows = [_row(side, len(of), asked(of, class_id, threshold)) for side, of in (("validation", validation), ("test", found))]
    table = pd.DataFrame(rows)
    st.dataframe(table, hide_index=True, key="calibration_table")
    title, of = f"{class_name} from a probability of {threshold:.2f} on", export.of_models([name])
    export.downloads(export.Export(title=title, table=table, of=of, charts={"Thresholds": chart}), "calibration_sides")


def _asked(name: str, found: Predictions) -> tuple[int, float]:
    """A class, of two the second before the first, and the probability from which on a review is said to be of it."""
    names = loaders.label_names(name, found.n_classes)
    order = sorted(range(len(names)), key=lambda i: len(names) == 2 and i != 1)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        chosen = controls.one("Class", {str(i): names[i] for i in order}, "calibration_class")
        threshold = st.slider("Threshold", 0.0, 1.0, 0.5, 0.01, key="calibration_threshold", bind="query-params")
    return int(chosen), threshold


def _along(found: Predictions, class_id: int) -> dict[str, list[float | None]]:
    """Figures at each threshold."""
    along = [asked(found, class_id, threshold) for threshold in THRESHOLDS.tolist()]
    return {
        "precision": [at.precision and at.precision.value for at in along],
        "recall": [at.recall and at.recall.value for at in along],
        "F1": [at.f1 for at in along],
    }


def _row(side: str, n: int, found: Asked) -> dict[str, str]:
    return {
        "side": side,
        "n": f"{n:,}",
        "precision": _written(found.precision),
        "recall": _written(found.recall),
        "F1": compare.NO_VALUE if found.f1 is None else f"{found.f1:.3f}",
        "accuracy": _written(found.accuracy),
    }


def _written(found: Estimate | None) -> str:
    return compare.NO_VALUE if found is None else f"{found.value:.1%} ({100 * found.low:.1f} to {found.high:.1%})"
