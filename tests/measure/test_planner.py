"""What fits, by prediction; the prediction itself against the bytes of a training's own network."""

import subprocess
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from core.config import BiLSTMArchitecture, EncoderArchitecture, RunConfig, TrainingConfig
from core.measure import planner
from core.measure.live_bytes import peak_of
from core.measure.planner import device_memory, largest_batch, needed_bytes, plan, rule_of_thumb
from core.measure.predict import peak_bytes
from core.networks.encoder import Encoder
from core.presets import PRESETS, bilstm, encoder_base, encoder_small
from core.training import machine

GIB = 2**30


def on_gpu(config: RunConfig, **knobs) -> RunConfig:
    return replace(config, training=replace(config.training, device="cuda", **knobs))


def test_the_largest_batch_fits_and_one_more_does_not(cell):
    for backend in ("eager", "sdpa", "chunked"):
        found = largest_batch(cell(backend=backend, what="step", length=100), 10**8)
        assert found is not None and found > 1
        assert peak_bytes(cell(backend=backend, what="step", length=100, batch=found)) <= 10**8
        assert peak_bytes(cell(backend=backend, what="step", length=100, batch=found + 1)) > 10**8


def test_no_batch_fits_nothing_and_none_is_known_of_an_unknown_kernel(cell):
    assert largest_batch(cell(what="step"), 1000) == 0
    assert largest_batch(cell(backend="cudnn", device="cuda", what="forward"), 10**9) is None


def test_the_rule_of_thumb_is_article_c_s():
    """(16 GB - 1 GB) / (512 x 768 x 8 x 4)."""
    assert rule_of_thumb(512, 768, 16 * 10**9) == 1192
    assert rule_of_thumb(512, 768, 10**9 // 2) == 0


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_what_a_training_needs_is_what_its_network_takes(backend, dropout):
    """A step as in training, of which the tables of dropout's masks are drawn before."""
    model = EncoderArchitecture(
        vocab_size=60, d_model=32, n_heads=4, n_layers=2, d_ff=96, max_len=96, dropout=dropout, embedding_dropout=0.0
    )
    config = RunConfig(model=model, training=TrainingConfig(batch_size=5, device="cpu", precision="float32", backend=backend))
    ids, labels = torch.randint(4, 60, (5, 96)), torch.arange(5) % 2

    def step() -> None:
        network = Encoder(model)
        optimizer = torch.optim.AdamW(network.parameters(), fused=True)
        for parameter in network.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        optimizer.zero_grad()
        F.cross_entropy(network(ids, backend=backend)[0], labels).backward()

    step()
    assert needed_bytes(config) == pytest.approx(peak_of(step), rel=0.03)


def test_a_training_that_fits_is_left_as_it_is():
    found = plan(on_gpu(encoder_small()), 16 * GIB)
    assert found is not None and found.fits and found.alternatives == ()
    assert found.largest_batch >= 64
    assert found.sentence.startswith("needs about ") and found.sentence.endswith(" of 16.0 GiB")


def test_what_would_fit_is_told_with_growing_batches():
    config = on_gpu(encoder_base(), backend="eager", precision="float32", batch_size=64)
    found = plan(config, 8 * GIB)
    assert found is not None and not found.fits
    same, flash, *again = [other.training for other in found.alternatives]
    assert same == replace(config.training, batch_size=found.largest_batch)
    assert flash.backend == "sdpa" and found.largest_batch < flash.batch_size <= 64
    assert all(each.checkpointing == "on" and each.batch_size > flash.batch_size for each in again)
    assert f"fits at batch {same.batch_size}, or at batch {flash.batch_size} with sdpa" in found.sentence
    assert all(needed_bytes(other) <= 8 * GIB for other in found.alternatives)


def test_short_reviews_leave_room_for_more_of_them():
    config = on_gpu(encoder_base(), backend="eager", precision="float32", batch_size=64)
    long, short = plan(config, 8 * GIB), plan(config, 8 * GIB, mean_length=128.0)
    assert long is not None and short is not None and short.largest_batch > 3 * long.largest_batch


def test_where_not_one_review_fits_there_is_no_alternative():
    found = plan(on_gpu(encoder_base()), GIB // 4)
    assert found is not None and (found.largest_batch, found.alternatives) == (0, ())
    assert "not even one review fits; choose a smaller max_len or a smaller network" in found.sentence


def test_a_mistake_of_attention_stays_on_eager():
    base = on_gpu(encoder_base(), precision="float32", batch_size=64)
    found = plan(replace(base, model=replace(base.model, mistake="no_mask")), 8 * GIB)
    assert found is not None and found.alternatives
    assert all(other.training.backend == "auto" for other in found.alternatives)


def test_a_bilstm_is_planned_on_a_cpu_and_a_kernel_that_is_not_understood_nowhere():
    config = replace(bilstm(), training=replace(bilstm().training, device="cpu"))
    found = plan(config, GIB // 8)
    assert found is not None and not found.fits
    assert plan(on_gpu(bilstm()), GIB) is None
    assert plan(on_gpu(encoder_small(), backend="cudnn"), GIB) is None


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_of_a_network_is_planned(name):
    config = PRESETS[name]()
    found = plan(replace(config, training=replace(config.training, device="cpu")), 10**15)
    assert found is None if config.model.kind == "linear" else found is not None and found.fits


def test_a_wider_network_needs_what_its_embedding_takes():
    base = BiLSTMArchitecture(vocab_size=1000, d_embedding=100, d_hidden=200)
    training = TrainingConfig(device="cpu", precision="float32", batch_size=1)
    few, many = (needed_bytes(RunConfig(model=replace(base, vocab_size=n), training=training)) for n in (1000, 100_000))
    assert few is not None and many is not None and 12 * 99_000 * 100 < many - few <= 16 * 99_000 * 100


def test_activations_are_computed_again_from_the_same_length_on_as_in_training():
    assert planner.CHECKPOINT_BEYOND == machine.CHECKPOINT_BEYOND


def test_memory_of_a_device(monkeypatch):
    free = device_memory("cpu")
    assert free is None or free > 2**20
    monkeypatch.setattr(planner.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout="1000\n2000\n"))
    assert device_memory("cuda") == 1000 * 2**20
    for error in (FileNotFoundError(), subprocess.TimeoutExpired("nvidia-smi", 5)):

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr(planner.subprocess, "run", fail)
        assert device_memory("cuda") is None
