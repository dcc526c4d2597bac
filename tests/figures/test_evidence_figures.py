import numpy as np
import pytest

from core.catalog import EVIDENCE
from core.figures.colors import DIVERGING, SEQUENTIAL, ink
from core.figures.evidence import contrast_heatmap, erasure_curves, evidence_heatmap, largest_share, word_labels
from core.records import Attribution, Evidence, Faithfulness, Prediction, Word

TEXT = "<b>a</b> $x$ a"
SPANS = [(0, 1), (1, 2), (3, 4), (9, 10), (10, 11), (13, 14)]


def evidence(**values: list[float]) -> Evidence:
    prediction = Prediction(
        label="<i>up</i>", probabilities={"down": 0.2, "<i>up</i>": 0.8}, logits=(0.0, 1.4), tokens_read=5, tokens_left_out=1
    )
    words = tuple(Word(span=span, read=i < 5, unknown=False) for i, span in enumerate(SPANS))
    found = {name: Attribution(values=np.array(row, dtype=float)) for name, row in values.items()}
    return Evidence(text=TEXT, prediction=prediction, words=words, found=found)


def curves() -> Faithfulness:
    return Faithfulness(
        shares=np.array([0.0, 0.4, 1.0]), deletion={"occlusion": np.array([0.9, 0.2, 0.1])},
        reversed={"occlusion": np.array([0.9, 0.8, 0.1])}, random=np.array([[0.9, 0.5, 0.1], [0.9, 0.6, 0.1]]), removed=False,
    )  # fmt: skip


def test_a_row_for_each_method_on_one_scale():
    found = evidence(attention=[1, 1, 1, 0, 1, 0], occlusion=[5, -2, 0, 1, 2, 0])
    (heatmap,) = evidence_heatmap(found).data
    assert heatmap.y == (EVIDENCE["attention"].title, EVIDENCE["occlusion"].title)
    np.testing.assert_allclose(heatmap.z[0], [0.25, 0.25, 0.25, 0, 0.25, np.nan])
    np.testing.assert_allclose(heatmap.z[1], [0.5, -0.2, 0, 0.1, 0.2, np.nan], atol=1e-7)
    assert (heatmap.zmin, heatmap.zmax) == (-0.5, 0.5) and largest_share(found) == 0.5
    assert heatmap.z.dtype == np.float32


def test_words_are_unique_and_never_markup():
    labels = word_labels(TEXT[slice(*span)] for span in SPANS)
    assert labels == ["1 &lt;", "2 b", "3 a", "4 &#36;", "5 x", "6 a"]
    figure = evidence_heatmap(evidence(attention=[1, 0, 0, 0, 0, 0]))
    assert "<b>" not in figure.to_json() and "<i>" not in figure.to_json()
    assert figure.layout.xaxis.type == "category" and figure.layout.yaxis.autorange == "reversed"


def test_evidence_of_nothing_is_drawn_as_nothing():
    (heatmap,) = evidence_heatmap(evidence(gradient=[0.0] * 6)).data
    assert (heatmap.zmin, heatmap.zmax) == (-1, 1) and not heatmap.z[0][:5].any()


def test_a_contrast_is_on_one_scale_around_nothing():
    rows = {"<b>": np.array([1.0, -3.0, np.nan]), "second": np.array([1.0, np.nan, np.nan]), "less": np.array([0, 3.0, np.nan])}
    figure = contrast_heatmap(["a", "<b>", "a"], rows, "<i>up</i>")
    (heatmap,) = figure.data
    np.testing.assert_array_equal(heatmap.z, list(rows.values()))
    assert (heatmap.zmin, heatmap.zmax) == (-3, 3) and heatmap.colorscale == tuple(map(tuple, DIVERGING))
    assert heatmap.x == ("1 a", "2 &lt;b&gt;", "3 a") and heatmap.y == ("&lt;b&gt;", "second", "less")
    assert "<i>" not in figure.to_json() and "<b>" not in figure.to_json()


def test_a_contrast_of_what_nobody_read_is_drawn():
    gaps = {name: np.array([np.nan]) for name in ("first", "second", "difference")}
    (heatmap,) = contrast_heatmap(["a"], gaps, "up").data
    assert (heatmap.zmin, heatmap.zmax) == (-1, 1) and np.isnan(heatmap.z).all()


def test_the_middle_of_the_colours_is_nothing_and_the_ends_are_equally_strong():
    places = [place for place, _ in DIVERGING]
    assert places == sorted(places) and (places[0], places[-1]) == (0, 1)
    assert dict(DIVERGING)[0.5] == ink(0.0) and DIVERGING[-1][1] == SEQUENTIAL[-1][1]
    assert DIVERGING[0][1] == "rgba(30,110,190,1.000)"
    assert [1 - place for place in reversed(places)] == pytest.approx(places)


@pytest.mark.parametrize("insertion", [False, True])
def test_curves_stand_in_the_band_of_the_random_orders(insertion):
    figure = erasure_curves(curves(), "up", insertion=insertion)
    band, line = figure.data
    assert band.name == "2 random orders" and line.name == EVIDENCE["occlusion"].title
    expected = ([0, 0.6, 1], [0.1, 0.8, 0.9]) if insertion else ([0, 0.4, 1], [0.9, 0.2, 0.1])
    np.testing.assert_allclose(line.x, expected[0])
    np.testing.assert_allclose(line.y, expected[1])
    middle = [1, 4]
    np.testing.assert_allclose(np.asarray(band.x)[middle], expected[0][1])
    np.testing.assert_allclose(np.asarray(band.y)[middle], [0.6, 0.5])


def test_all_methods_have_colours_of_their_own():
    found, names = curves(), [name for name, method in EVIDENCE.items() if method.of_networks]
    many = Faithfulness(
        shares=found.shares, deletion=dict.fromkeys(names, found.random[0]), reversed={}, random=found.random, removed=False
    )
    colors = [trace.line.color for trace in erasure_curves(many, "up").data[1:]]
    assert len(set(colors)) == len(names)
