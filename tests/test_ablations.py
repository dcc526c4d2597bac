"""Each ablation changes one thing in any configuration that has it, and says of any other why not."""

from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from core.ablations import ABLATIONS, find, pair, why_not
from core.config import MISTAKES_OF_ATTENTION, RunConfig
from core.networks.auto import build
from core.presets import PRESETS, preset

SMALL = {"vocab_size": 50, "d_model": 32, "n_heads": 8, "d_ff": 16, "n_layers": 2, "max_len": 20}
REFUSED = r"ablation '[\w.+-]+': .+"


def differing(one: RunConfig, other: RunConfig) -> dict[str, Any]:
    """The knobs of the other in which the two are not the same."""
    found = {}
    for part in fields(RunConfig):
        a, b = getattr(one, part.name), getattr(other, part.name)
        found |= {knob.name: getattr(b, knob.name) for knob in fields(a) if getattr(a, knob.name) != getattr(b, knob.name)}
    return found


def test_every_ablation_asks_a_question():
    questions = [ablation.question for ablation in ABLATIONS.values()]
    assert all(question.endswith("?") for question in questions) and len(set(questions)) == len(questions)
    assert all(name == ablation.name and "," not in name for name, ablation in ABLATIONS.items())


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_changes_its_knobs_alone_in_every_configuration(name):
    made = 0
    for base in (make() for make in PRESETS.values()):
        reason = why_not(base, name)
        if reason is not None:
            assert reason.startswith(f"ablation {name!r}: ") and not reason.endswith(".")
            continue
        base, variant = pair(base, name)
        changed = differing(base, variant)
        assert changed and changed.items() <= ABLATIONS[name].knobs.items()
        assert ABLATIONS[name](base) == variant
        made += 1
    assert made, "it can be made of no preset"


@pytest.mark.parametrize("name", [name for name, ablation in ABLATIONS.items() if ablation.part == "model"])
def test_a_network_is_built_of_it_and_trained_on_a_batch(name):
    base = preset("encoder-base")  # which has neither the first choices nor the articles' first ones
    base = replace(base, model=replace(base.model, **SMALL, positional="learned", activation="gelu"))
    others = dict(norm="post", pooling="mean", embedding_scale=False, truncation="head+tail", positional="none", n_layers=1)
    other = replace(base, model=replace(base.model, **others, n_heads=2, activation="relu"))
    _, variant = pair(base if why_not(base, name) is None else other, name)
    network = build(variant.model, ("no", "yes")).train()
    ids = torch.randint(4, 50, (3, min(variant.model.max_len, 24)))
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    loss = network(ids, mask, labels=torch.tensor([0, 1, 1])).loss
    loss.backward()
    assert loss.isfinite() and all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize("backend", ["auto", "sdpa", "eager"])
@pytest.mark.parametrize("name", ["mask-after-softmax", "mask-off"])
def test_what_eager_alone_can_do_puts_its_base_on_eager(name, backend):
    base = RunConfig()
    both = pair(replace(base, training=replace(base.training, backend=backend)), name)
    assert [config.training.backend for config in both] == ["eager", "eager"]
    assert both[1].model.mistake in MISTAKES_OF_ATTENTION


def test_no_other_ablation_chooses_a_backend():
    base = RunConfig(training=replace(RunConfig().training, backend="sdpa"))
    for name in ABLATIONS:
        if why_not(base, name) is None and ABLATIONS[name].knobs.get("mistake") not in MISTAKES_OF_ATTENTION:
            assert {config.training.backend for config in pair(base, name)} == {"sdpa"}, name


@pytest.mark.parametrize(("name", "other"), [("float32", "bfloat16"), ("bfloat16", "float32")])
def test_a_precision_is_held_against_the_other_one(name, other):
    assert [config.training.precision for config in pair(RunConfig(), name)] == [other, name]


@pytest.mark.parametrize(
    ("base", "name", "said"),
    [
        ("bilstm", "heads-1", "a BiLSTM has no n_heads"),
        ("bilstm", "positions-none", "a BiLSTM has no positional"),
        ("nb-svm", "heads-1", "a linear model has no n_heads"),
        ("bilstm", "layers-3", "n_layers: got 3, expected int from 1 to 2"),
        ("encoder-small", "heads-8", "this base has n_heads 8 already"),
        ("encoder-two-layer", "beta2-0.98", "this base has betas (0.9, 0.98) already"),
        (
            "encoder-base",
            "mean-over-padding",
            "mistake: got 'mean_over_padding', which without pooling by mean changes nothing",
        ),
    ],
)
def test_what_cannot_be_made_of_a_base_says_why(base, name, said):
    with pytest.raises(ValueError, match=REFUSED) as refused:
        pair(preset(base), name)
    assert said in str(refused.value)


def test_an_unknown_ablation_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="ablation: got 'heads-3', expected one of heads-1, "):
        find("heads-3")


def test_dropout_is_taken_from_a_network_that_has_less_of_it():
    assert differing(*pair(preset("bilstm"), "dropout-off")) == {"dropout": 0.0, "embedding_dropout": 0.0}
