"""Evidence to take away: one HTML file that needs nothing else, and the same as plain values."""

import hashlib
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.artifact import Opened
from core.catalog import EVIDENCE
from core.figures import evidence as figures
from core.figures import report
from core.figures.attention import attention_heatmap
from core.figures.labels import token_labels
from core.inspection.faithfulness import RANDOM_ORDERS, SEED, areas
from core.inspection.summary import agreement, rests_on
from core.records import Evidence, Faithfulness, Reading

MOST_IN_MAP = 512
"""Tokens of an attention map that is drawn."""


def as_values(found: Evidence, curves: Faithfulness) -> dict[str, Any]:
    """What `explain --json` prints. Null for a method that does not apply, 0 for a word that was not read."""
    words = [
        {"text": found.text[slice(*word.span)], "span": word.span, "read": word.read}
        | {name: float(found.found[name].values[i]) if name in found.found else None for name in EVIDENCE}
        for i, word in enumerate(found.words)
    ]
    return {
        "label": found.prediction.label,
        "probabilities": found.prediction.probabilities,
        "tokens_read": found.prediction.tokens_read,
        "tokens_left_out": found.prediction.tokens_left_out,
        "words": words,
        "elsewhere": {name: one.elsewhere for name, one in found.found.items()},
        "completeness_gap": found.completeness_gap,
        "faithfulness": {name: _worth(curves, name) for name in found.found},
        "rests_on": rests_on(found),
        "agreement": agreement(found),
    }


def as_html(model: Opened, reading: Reading, found: Evidence, curves: Faithfulness, command: str) -> str:
    """The whole file, with all figures and a stamp of what they are of."""
    label, notes = found.prediction.label, [f"{EVIDENCE[name].title}: {said(found, curves, name)}." for name in found.found]
    charts = {
        "Evidence, word by word": figures.evidence_heatmap(found),
        "Deletion": figures.erasure_curves(curves, label),
        "Insertion": figures.erasure_curves(curves, label, insertion=True),
    } | _map(reading)
    sentences = [f"{rests_on(found)}.", *filter(None, [f"{agreement(found)}."]), *notes]
    return report.page(f"What {model.name} makes of a review", [found.text, *sentences], charts, table(found),
                       [f"{line}." for line in stamp(model, found)], command)  # fmt: skip


def said(found: Evidence, curves: Faithfulness, name: str) -> str:
    """How a method was computed and what it is worth here, without full stop."""
    worth, note = areas(curves, name), found.found[name].note
    random = f"random {worth.random_low:.2f} to {worth.random_high:.2f}"
    verdict = f"{worth.verdict} (deletion {worth.deletion:.2f}, insertion {worth.insertion:.2f}, {random})"
    return "; ".join(filter(None, [EVIDENCE[name].summary.rstrip("."), note, verdict]))


def table(found: Evidence) -> pd.DataFrame:
    """A row for each word with what every method finds in it; missing where it was not read."""
    read = [word.read for word in found.words]
    columns: dict[str, Any] = {
        "word": [found.text[slice(*word.span)] for word in found.words],
        "from": [word.span[0] for word in found.words],
        "to": [word.span[1] for word in found.words],
        "read": ["yes" if word else "no" for word in read],
    }
    for name, one in found.found.items():
        columns[EVIDENCE[name].title] = pd.Series(one.values).where(read)
    return pd.DataFrame(columns)


def stamp(model: Opened, found: Evidence) -> list[str]:
    """What figures are of and how they count, sentences without full stop."""
    answer, seed = found.prediction, model.run.get("config", {}).get("training", {}).get("seed")
    trained = "" if seed is None else f", trained with seed {seed}"
    n_tokens = answer.tokens_read + answer.tokens_left_out
    limit = figures.largest_share(found)
    maps = (
        "Attention is of backend 'eager' in float32, before dropout, in evaluation mode; layers and heads count from 1",
        "Evidence without a sign says how much, not for which class",
    )
    return [
        f"Model {model.name}, weights of SHA-256 {weights_hash(model)}{trained}",
        f"Read {answer.tokens_read:,} of {n_tokens:,} tokens ({model.cut.truncation} of a longer review); words that were not "
        "read have no figures",
        f"{', '.join(EVIDENCE[name].title for name in found.found if EVIDENCE[name].signed)}: in nats of log-odds, above 0 for "
        f"{answer.label}",
        *(maps if "attention" in found.found else ()),
        f"Colours go from {-limit:.1%} to {limit:.1%} of what a method finds in all words, the same for all methods",
        f"{RANDOM_ORDERS} random orders, drawn with seed {SEED}",
    ]


def weights_hash(model: Opened) -> str:
    """SHA-256 of its safetensors, of several in the order of their names, the first 16 digits."""
    digest = hashlib.sha256()
    for path in sorted(model.folder.glob("model*.safetensors")):
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()[:16]


def _worth(curves: Faithfulness, name: str) -> dict[str, Any]:
    found = areas(curves, name)
    return {
        "deletion": found.deletion, "insertion": found.insertion,
        "random_low": found.random_low, "random_high": found.random_high, "verdict": found.verdict,
    }  # fmt: skip


def _map(reading: Reading) -> dict[str, go.Figure]:
    """Self-attention, all heads and layers averaged, where there is room for it."""
    attention = reading.windows[0]
    if not 1 < attention.weights.shape[2] <= MOST_IN_MAP:
        return {}
    labels, weights = token_labels(reading.text, attention), attention.averaged()
    name = "all layers and heads averaged"
    return {f"Attention, {name}": attention_heatmap(weights, labels, labels, float(weights.max()), name)}
