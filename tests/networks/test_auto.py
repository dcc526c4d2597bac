"""The networks as transformers knows them."""

import json
from dataclasses import asdict, fields, replace

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification
from transformers.utils import logging

from core.config import BiLSTMArchitecture, EncoderArchitecture, LinearArchitecture
from core.networks import auto
from tests.backends import able

ENCODER = EncoderArchitecture(
    vocab_size=40, d_model=24, n_heads=3, n_layers=2, d_ff=20, max_len=12, norm="pre", activation="gelu", positional="learned",
    pooling="mean+max", embedding_scale=True, attention_dropout=0.5, token_dropout=0.2,
)  # fmt: skip
BILSTM = BiLSTMArchitecture(vocab_size=40, d_embedding=6, d_hidden=5, n_layers=2, max_len=12, dropout=0.5)
LINEAR = LinearArchitecture(vocab_size=40, n_features=30, c_values=(0.5, 2.0), features="tfidf")
CONFIGS = {
    EncoderArchitecture: auto.EncoderConfig, BiLSTMArchitecture: auto.BiLSTMConfig, LinearArchitecture: auto.LinearConfig,
}  # fmt: skip
every_network = pytest.mark.parametrize("architecture", [ENCODER, BILSTM], ids=["encoder", "bilstm"])
every_kind = pytest.mark.parametrize("architecture", [ENCODER, BILSTM, LINEAR], ids=["encoder", "bilstm", "linear"])


@pytest.fixture(autouse=True)
def no_progress_bars():
    logging.disable_progress_bar()


def built(architecture, labels=("negative", "positive"), seed=0):
    torch.manual_seed(seed)
    return auto.build(architecture, labels).eval()


def batch():
    input_ids = torch.randint(4, 40, (3, 8), generator=torch.Generator().manual_seed(1))
    return input_ids, (torch.arange(8) < torch.tensor([[8], [3], [1]])).long()


def rewrite(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


# Configurations


@pytest.mark.parametrize("kind", CONFIGS, ids=lambda kind: kind.__name__)
def test_config_fields_and_defaults_are_the_architecture_s(kind):
    config = CONFIGS[kind]()
    assert {knob.name: getattr(config, knob.name) for knob in fields(kind)} == asdict(kind())
    assert config.architecture == kind()
    ours = set(config.to_dict()) - set(auto.PreTrainedConfig().to_dict())
    assert ours - {"model_type"} == {knob.name for knob in fields(kind)} - {"n_classes"}  # there: the length of id2label


@every_kind
def test_every_knob_goes_both_ways_and_through_json(architecture, tmp_path):
    config = CONFIGS[type(architecture)](**asdict(replace(architecture, n_classes=5)))
    assert config.architecture == replace(architecture, n_classes=5)
    config.save_pretrained(tmp_path)
    assert AutoConfig.from_pretrained(tmp_path).architecture == replace(architecture, n_classes=5)


def test_transformers_names_mean_our_knobs():
    config = auto.EncoderConfig(hidden_size=64, num_attention_heads=2, num_hidden_layers=1, intermediate_size=8)
    assert config.architecture == EncoderArchitecture(d_model=64, n_heads=2, n_layers=1, d_ff=8)
    assert (config.hidden_size, config.num_attention_heads, config.max_position_embeddings) == (64, 2, 256)
    assert auto.BiLSTMConfig(hidden_size=3).architecture == BiLSTMArchitecture(d_hidden=3)


@pytest.mark.parametrize("given", [dict(num_labels=3), dict(n_classes=3), dict(id2label={0: "a", 1: "b", 2: "c"})], ids=str)
@pytest.mark.parametrize("config_type", CONFIGS.values(), ids=lambda config_type: config_type.__name__)
def test_the_number_of_classes_has_one_truth(config_type, given):
    config = config_type(**given)
    assert config.n_classes == config.num_labels == config.architecture.n_classes == len(config.id2label) == 3


@every_kind
def test_labels_name_the_classes(architecture):
    network = built(architecture, ("bad", "mixed", "good"))
    assert network.config.id2label == {0: "bad", 1: "mixed", 2: "good"}
    assert network.config.label2id == {"bad": 0, "mixed": 1, "good": 2}
    assert network(*batch()).logits.shape == (3, 3)


@pytest.mark.parametrize("change, complaint", [
    (dict(n_heads=5), "n_heads: got 5 for d_model 24, expected a divisor of d_model, such as 4"),
    (dict(n_layers=0), "n_layers: got 0, expected int from 1 to 1000"),
    (dict(dropout=1.5), "dropout: got 1.5, expected float from 0 to 0.95"),
    (dict(d_model=33, positional="sinusoidal"), "d_model: got 33, expected an even number for sinusoidal positions"),
])  # fmt: skip
def test_a_config_of_no_possible_network_is_refused(change, complaint, tmp_path):
    built(ENCODER).save_pretrained(tmp_path)
    rewrite(tmp_path, **change)
    for opened in (AutoConfig, AutoModelForSequenceClassification):
        with pytest.raises(ValueError, match=complaint):
            opened.from_pretrained(tmp_path)


# Files


@every_kind
def test_reloaded_the_logits_are_the_same_bit_for_bit(architecture, tmp_path):
    network = built(architecture)
    network.save_pretrained(tmp_path)
    torch.manual_seed(99)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert type(again) is type(network) and not any(module.training for module in again.modules())
    assert again.config.architecture == network.config.architecture
    with torch.no_grad():
        assert torch.equal(again(*batch()).logits, network(*batch()).logits)


@every_kind
def test_stored_in_float16_it_opens_in_float32_and_as_it_is(architecture, tmp_path):
    network = built(architecture)
    expected = network(*batch()).logits
    network.half().save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path, dtype=torch.float32)
    assert {parameter.dtype for parameter in again.parameters()} == {torch.float32}
    assert torch.equal(again(*batch()).logits, network.float()(*batch()).logits)
    torch.testing.assert_close(again(*batch()).logits, expected, atol=5e-3, rtol=5e-3)
    as_it_is = AutoModelForSequenceClassification.from_pretrained(tmp_path)(*batch()).logits
    assert as_it_is.dtype == torch.float16
    torch.testing.assert_close(as_it_is.float(), expected, atol=2e-2, rtol=2e-2)


@every_network
def test_a_classifier_for_other_classes_starts_as_a_new_one(architecture, tmp_path):
    built(architecture).save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=3, ignore_mismatched_sizes=True)
    classifier = again.network.classifier
    assert again.config.architecture.n_classes == 3 and classifier.weight.shape[0] == 3
    limit = (6 / sum(classifier.weight.shape)) ** 0.5
    assert 0.3 * limit < classifier.weight.abs().mean() < 0.7 * limit and not classifier.bias.any()


@every_network
def test_the_seed_makes_the_network(architecture):
    first, same, other = (list(built(architecture, seed=seed).parameters()) for seed in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True) if a.ndim > 1)


# What it answers


@every_network
def test_loss_is_minus_the_log_of_the_right_class(architecture):
    network = built(architecture)
    output = network(*batch(), labels=torch.tensor([0, 1, 1]))
    right = output.logits.double().softmax(-1)[torch.arange(3), torch.tensor([0, 1, 1])]
    assert output.loss.item() == pytest.approx(-right.log().mean().item(), rel=1e-5)
    assert network(*batch()).loss is None
    with torch.autocast("cpu", torch.bfloat16):
        output = network(*batch(), labels=torch.tensor([0, 1, 1]))
    assert (output.logits.dtype, output.loss.dtype) == (torch.bfloat16, torch.float32)
    output = network.half()(*batch(), labels=torch.tensor([0, 1, 1]))
    assert (output.logits.dtype, output.loss.dtype) == (torch.float16, torch.float32)


@pytest.mark.parametrize("backend", able(gradients=True))
def test_every_backend_answers_alike_and_shows_weights_or_says_why_not(backend):
    network = built(ENCODER)
    plain = network(*batch())
    assert plain.attentions is None
    torch.testing.assert_close(network(*batch(), backend=backend).logits, plain.logits, atol=1e-5, rtol=1e-5)
    if backend in able(weights=True):
        assert len(network(*batch(), output_attentions=True, backend=backend).attentions) == 2
    else:
        with pytest.raises(ValueError, match=f"backend '{backend}': it computes no weights; to inspect, use 'eager'"):
            network(*batch(), output_attentions=True, backend=backend)


@every_network
def test_plain_users_get_maps_of_the_same_pass(architecture):
    network = built(architecture)
    output = network(*batch(), output_attentions=True)
    shape = (3, 3, 8, 8) if architecture is ENCODER else (3, 1, 1, 8)
    assert [weights.shape for weights in output.attentions] == [shape] * (2 if architecture is ENCODER else 1)
    for weights in output.attentions:
        assert weights.dtype == torch.float32 and not weights[1, ..., 3:].any()
        torch.testing.assert_close(weights.sum(-1), torch.ones(shape[:-1]))
    torch.testing.assert_close(output.logits, network(*batch()).logits, atol=1e-5, rtol=1e-5)


def test_an_unknown_backend_is_told_the_known_ones():
    with pytest.raises(ValueError, match="backend: got 'flash', expected one of eager, sdpa"):
        built(ENCODER)(*batch(), backend="flash")


def test_head_gain_reaches_the_network():
    network, gain = built(ENCODER), torch.ones(2, 3)
    logits = network(*batch()).logits
    assert torch.equal(network(*batch(), head_gain=gain).logits, logits)
    gain[1, 0] = 0
    assert not torch.isclose(network(*batch(), head_gain=gain).logits, logits).all()
    assert not torch.isclose(network(*batch(), head_mean=gain == 0).logits, logits).all()


@pytest.mark.parametrize("backend", able(gradients=True, dropout=True))
def test_twenty_answers_in_evaluation_are_one(backend):
    network = built(ENCODER)
    answers = [network(*batch(), backend=backend).logits.softmax(-1) for _ in range(20)]
    assert all(torch.equal(answer, answers[0]) for answer in answers)
    network.train()
    assert not torch.equal(network(*batch(), backend=backend).logits, network(*batch(), backend=backend).logits)
