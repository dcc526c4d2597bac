import io

import numpy as np
import pytest
from PIL import Image

from core.figures.attention import THUMBNAIL, attention_heatmap, largest_weight, thumbnail
from core.figures.colors import INK, SEQUENTIAL, ink, opacity


def weights(n_queries: int, n_tokens: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(n_tokens), n_queries).astype(np.float32)


def labels(n: int) -> list[str]:
    return [f"{i} token" for i in range(1, n + 1)]


def pixels(png: bytes) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(png)))


def test_heatmap_draws_rows_as_queries_on_the_given_range():
    drawn = weights(3, 5)
    figure = attention_heatmap(drawn, labels(3), labels(5), 0.7, "layer 1, head 2")
    heatmap = figure.data[0]
    np.testing.assert_array_equal(heatmap.z, drawn)
    assert heatmap.z.dtype == np.float32
    assert (heatmap.zmin, heatmap.zmax) == (0, 0.7)
    assert (list(heatmap.y), list(heatmap.x)) == (labels(3), labels(5))
    assert figure.layout.yaxis.autorange == "reversed"


def test_labels_that_look_like_numbers_and_dates_stay_names_and_thin_themselves():
    typed = [f"{i} {piece}" for i, piece in enumerate("10 1E1 2 3E2 2010-01-05".split(), 1)]
    figure = attention_heatmap(weights(5, 5), typed, typed, 1.0, "")
    for axis, most in ((figure.layout.xaxis, 24), (figure.layout.yaxis, 28)):
        assert (axis.type, axis.nticks, axis.tickvals) == ("category", most, None)


def test_heatmap_of_512_tokens_travels_in_less_than_two_megabytes():
    figure = attention_heatmap(weights(512, 512), labels(512), labels(512), 1.0, "")
    assert len(figure.to_json()) < 2_000_000


def test_the_largest_weight_is_told_in_letters_as_they_were_typed():
    drawn = np.array([[0.2, 0.8], [0.9, 0.1]], dtype=np.float32)
    assert largest_weight(drawn, ["1 a", "2 &lt;b&gt;"], ["1 a", "2 b"]) == "the largest weight, 0.9, is from 2 <b> to 1 a"


def test_a_map_of_zeros_has_a_range():
    zeros = np.zeros((2, 2), dtype=np.float32)
    assert attention_heatmap(zeros, labels(2), labels(2), 0.0, "").data[0].zmax == 1
    assert not pixels(thumbnail(zeros, 0.0))[..., 3].any()


def test_colour_scale_follows_the_opacity_of_words_and_thumbnails():
    for share, color in SEQUENTIAL:
        assert color == ink(float(opacity(share)))
    assert (SEQUENTIAL[0][0], SEQUENTIAL[-1][0]) == (0, 1)


@pytest.mark.parametrize(("n", "side"), [(1, 96), (2, 96), (50, 50), (96, 96), (97, 49), (512, 86)])
def test_thumbnail_is_small_and_neither_blurred_nor_large(n, side):
    assert pixels(thumbnail(weights(n, n), 1.0)).shape == (side, side, 4)


def test_a_single_weight_of_a_long_review_keeps_its_full_colour_and_its_place():
    drawn = np.zeros((200, 200), dtype=np.float32)
    drawn[10, 199] = 0.5  # token 11 attends to the last one
    alpha = pixels(thumbnail(drawn, 0.5))[..., 3]
    assert alpha.shape == (67, 67)  # blocks of 3
    assert np.argwhere(alpha).tolist() == [[3, 66]]
    assert alpha[3, 66] == 255


def test_thumbnail_colour_is_the_square_root_of_the_share_of_the_ceiling():
    picture = pixels(thumbnail(np.full((1, 1), 0.25, dtype=np.float32), 1.0))
    assert picture[0, 0].tolist() == [*INK, 128]


def test_thumbnail_side_is_never_above_the_limit():
    assert max(max(pixels(thumbnail(weights(n, n), 1.0)).shape[:2]) for n in range(1, 300, 7)) <= THUMBNAIL
