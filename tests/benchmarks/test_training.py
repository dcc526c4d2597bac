"""Every contestant trains, and what is counted as its operations is what PyTorch counts."""

import pkgutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import training
from benchmarks.training import CONTESTANTS, operations, peer, table
from core.networks.encoder import Encoder
from core.presets import preset


@pytest.mark.parametrize("name", CONTESTANTS)
def test_a_contestant_trains(name, setting):
    make, knobs = CONTESTANTS[name]
    run = pkgutil.resolve_name(make)(setting, **knobs)
    assert run() > 0 and run() > 0


def test_operations_are_those_that_pytorch_counts():
    architecture = replace(preset("encoder-small").model, d_model=12, n_heads=3, d_ff=20, n_layers=2, vocab_size=50)
    network, length = Encoder(architecture), 11
    with FlopCounterMode(display=False) as counter:
        network(torch.randint(4, 50, (5, length)), backend="eager")[0].sum().backward()
    classifier = 3 * 2 * 5 * architecture.d_model * 2
    assert 5 * operations(architecture, np.array([length])) == counter.get_total_flops() - classifier


def test_longer_reviews_count_by_their_own_length():
    model = preset("encoder-small").model
    one, other = (operations(model, np.array([length])) for length in (3, 250))
    assert operations(model, np.array([3, 250])) == pytest.approx((one + other) / 2)


def test_the_table_compares_rivals_with_ours_of_the_same_kind(setting, monkeypatch):
    monkeypatch.setattr(training, "gemm_rate", lambda device: 1e12)
    found = {"encoder, this lab": [8.0, 6.0], "encoder, article code": [2.0, 1.0], "bilstm, this lab": [9.0, 9.0]}
    rows = {row[0]: row[1:] for row in table(setting, found).rows}
    assert rows["encoder, article code"][:6] == (1.5, 1.0, 2.0, 5.0, 4.0, 6.0)
    assert rows["bilstm, this lab"][3:6] == (1.0, 1.0, 1.0)


def test_a_peer_is_a_script_that_prints_its_rate(tmp_path):
    (tmp_path / "rate.py").write_text("import sys; print('noise'); print('{\"reviews_per_s\": %s}' % (7 * int(sys.argv[2])))")
    assert peer(tmp_path, "rate.py", "bilstm") == 7 * training.PEER_STEPS
    (tmp_path / "broken.py").write_text("raise OSError('no data')")
    with pytest.raises(ValueError, match="broken.py bilstm ended: OSError: no data"):
        peer(tmp_path, "broken.py", "bilstm")
