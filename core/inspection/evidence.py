"""Which words of a review an answer rests on, by each method of `core.catalog.EVIDENCE`.

A method is a function of a `Subject`, and runs only when it is asked for.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float

from core.artifact import Reader
from core.catalog import EVIDENCE, resolve
from core.inspection import gradients
from core.inspection import rollout as layers
from core.inspection.occlusion import occluded
from core.inspection.subject import Subject, has_heads, is_linear, subject
from core.inspection.words import ADDED
from core.records import Attribution, Evidence


def evidence(
    model: Reader, text: str, methods: Sequence[str] | None = None, heard: Callable[[str], None] = lambda method: None
) -> Evidence:
    """What these methods find, by default all that apply to the model; `heard` is told of each that is done.

    ValueError for a text that cannot be read, an unknown method, and one that does not apply.
    """
    asked = subject(model, text)
    found = {}
    for name in applicable(model) if methods is None else methods:
        method = resolve(EVIDENCE, "evidence", name)
        if (reason := why_not(model, name)) is not None:
            raise ValueError(f"{name}: {reason}")
        found[name] = method(asked)
        heard(name)
    return Evidence(text=text, prediction=asked.reading.prediction, words=asked.words, found=found)


def applicable(model: Reader) -> list[str]:
    """The methods that apply to a model."""
    return [name for name in EVIDENCE if why_not(model, name) is None]


def why_not(model: Reader, name: str) -> str | None:
    """A sentence that says why a method does not apply; None if it does."""
    method, linear = EVIDENCE[name], is_linear(model)
    if linear and not method.of_linear:
        return f"{model.name} is a linear model, which attends to nothing and has no layers; ask for weights"
    if not linear and not method.of_networks:
        return f"it is of linear models, and {model.name} is a network; ask for gradient"
    if method.of_layers and not has_heads(model):
        return f"it is of self-attention, which {model.name} does not have; ask for attention"
    return None


def attention(asked: Subject) -> Attribution:
    """The weights with which the last layer makes up what is pooled."""
    return _of_tokens(asked, _pooled(asked, asked.reading.windows[0].weights[-1].mean(0)))


def rollout(asked: Subject) -> Attribution:
    """Attention rollout to what is pooled."""
    residual = getattr(asked.model.network.config, "residual", True)
    return _of_tokens(asked, _pooled(asked, layers.rollout(asked.reading.windows[0].weights, residual=residual)))


def value_norm(asked: Subject) -> Attribution:
    """The last layer's weights times the lengths of what they weigh, averaged over heads."""
    weighted = layers.weighted_by_values(asked.reading.windows[0].weights, layers.value_norms(asked))
    return _of_tokens(asked, _pooled(asked, weighted[-1].mean(0)))


def gradient(asked: Subject) -> Attribution:
    """Input times gradient."""
    return _of_tokens(asked, gradients.input_x_gradient(asked))


def integrated_gradients(asked: Subject) -> Attribution:
    """Integrated gradients, and how well they add up."""
    found = gradients.integrated(asked)
    note = f"{found.steps} steps, whose sum misses what it explains by {found.gap:.1%}"
    if found.gap >= gradients.MOST_GAP:
        note += f", more than the {gradients.MOST_GAP:.0%} that it should"
    return _of_tokens(asked, found.values, found.gap, note)


def occlusion(asked: Subject) -> Attribution:
    """Each word hidden in turn."""
    values, together = occluded(asked)
    note = None if together == 1 else f"words were hidden {together} at a time, since there are {len(asked.read):,}"
    return Attribution(values=values, note=note)


def weights(asked: Subject) -> Attribution:
    """What a linear model's own weights add: to the log-odds of two classes, and of more to the logit of the one predicted."""
    linear, target = asked.model.network.network, asked.target
    parts, bias = linear.contributions(torch.from_numpy(asked.ids)).numpy(), linear.bias.numpy()
    others = [1 - target] if len(bias) == 2 else []  # of more classes each is told from all others by its own weights
    values, rest = (of[..., target] - of[..., others].sum(-1) for of in (parts, bias))
    whole = "log-odds" if others else "logit"
    return _of_tokens(asked, values, note=f"together with {rest:+.3f}, which every review has, they are the {whole}")


def _pooled(asked: Subject, rows: Float[np.ndarray, "Q T"]) -> Float[np.ndarray, "T"]:
    config = asked.model.network.config
    pooling = getattr(config, "pooling", getattr(config, "classifier_pooling", "cls"))
    return layers.pooled(rows, first=pooling == "cls")


def _of_tokens(
    asked: Subject, values: Float[np.ndarray, "T"], gap: float | None = None, note: str | None = None
) -> Attribution:
    elsewhere = float(values[asked.word_of == ADDED].sum())
    return Attribution(values=asked.to_words(values), elsewhere=elsewhere, completeness_gap=gap, note=note)
