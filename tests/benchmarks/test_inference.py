"""Predictions by network, kernel and batch."""

import numpy as np
import pytest
import torch

from benchmarks import article, inference
from benchmarks.training import sized


def test_every_network_and_kernel_is_timed_at_every_batch(setting):
    (table,) = inference.speeds(setting)
    rows = {row[:3]: row[3:] for row in table.rows}
    networks = [("encoder", name) for name in ("eager", "sdpa", "chunked")] + [
        ("bilstm", "-"),
        ("article's encoder", "written out"),
    ]
    assert set(rows) == {(*network, batch) for network in networks for batch in (1, 16, 32)}
    assert all(0 < low <= median <= high for median, low, high in rows.values())
    assert "seconds multiplied by 16" in table.caption  # 32 reviews for 512


@pytest.mark.parametrize("name", ["encoder-small", "bilstm"])
def test_every_review_is_read_once_and_padding_is_hidden(setting, name):
    model = sized(setting, name).model
    network = inference.reader(setting, model).network
    reviews = [np.arange(4, 4 + n) for n in (3, 9, 5)]
    read, forward = [], network.forward

    def seen(ids, mask, **asked):
        answers = forward(ids, mask, **asked)
        read.extend(answers[0])
        return answers

    network.forward = seen
    backend = "sdpa" if name == "encoder-small" else None
    inference.read_all(setting, network, reviews, 2, backend)
    inference.read_all(setting, network, reviews, 1, backend)
    together, alone = torch.stack(read[:3]), torch.stack(read[3:])
    torch.testing.assert_close(together, alone)


def test_the_article_s_network_is_not_given_a_kernel(setting):
    network = article.network(sized(setting, "encoder-small").model).eval()
    inference.read_all(setting, network, [np.arange(4, 9), np.arange(4, 7)], 2, None)
