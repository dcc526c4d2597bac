"""One review through one model: what it answers and where it looks, from the same forward pass."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from core.artifact import Reader
from core.data.batches import Cut, collate
from core.data.tokenizer import Encoded, encode
from core.records import AttentionMap, Prediction, Reading
from core.statistics import softmax
from core.words import joined

MOST_WINDOWS = 64
"""Every window's maps are kept: the memory of more is that of a book, not of a review."""


@torch.no_grad()
def read(model: Reader, text: str, *, windows: bool = False, **asked: Any) -> Reading:
    """The reading of a text. Longer than the model reads at once, it is cut, or with `windows` read in several passes.

    The network's forward is given what else is `asked` of it, such as a `head_gain`.

    Windows are of about equal size and their logits are averaged (hierarchical reading, arXiv:1910.10781, without the second
    network). ValueError if the text holds nothing to read, or would take more than `MOST_WINDOWS`.
    """
    encoded = encode_typed(model, text)
    cut = model.cut
    passes = cut.windows(len(encoded.ids)) if windows else [cut.kept(len(encoded.ids))]
    if len(passes) > MOST_WINDOWS:
        raise ValueError(
            f"got a review of {len(encoded.ids):,} tokens, which {model.name} reads in {len(passes):,} windows, "
            f"expected at most {MOST_WINDOWS}: shorten it, or read it without windows"
        )
    logits, maps = zip(*(_pass(model, encoded, cut, kept, asked) for kept in passes), strict=True)
    read_places = np.concatenate(passes)
    return Reading(
        text=text,
        prediction=prediction(model.label_names, np.mean(logits, axis=0), len(encoded.ids), len(read_places)),
        windows=maps,
        read=tuple(joined((encoded.spans[i] for i in read_places), touching=True)),
        training_mode=any(module.training for module in model.network.modules()),
    )


def encode_typed(model: Reader, text: str) -> Encoded:
    """The tokens of a text. ValueError if there is none, or if half of a character is among its characters."""
    try:
        text.encode()
    except UnicodeEncodeError as error:  # bytes that are not UTF-8 arrive so from a command line
        raise ValueError(f"got {text[error.start]!r} at character {error.start + 1}, which is no Unicode text") from error
    encoded = encode(model.tokenizer, text)
    if len(encoded.ids) == 0:
        what = "no text" if not text.strip() else "a text without a visible character"
        raise ValueError(f"got {what}, expected a review of at least one word")
    return encoded


def prediction(label_names: Sequence[str], logits: np.ndarray, n_tokens: int, n_read: int) -> Prediction:
    """Logits as an answer."""
    return Prediction(
        label=label_names[int(logits.argmax())],
        probabilities=dict(zip(label_names, softmax(logits).tolist(), strict=True)),
        logits=tuple(logits.tolist()),
        tokens_read=n_read,
        tokens_left_out=n_tokens - n_read,
    )


def _pass(
    model: Reader, encoded: Encoded, cut: Cut, kept: Int[np.ndarray, "kept"], asked: dict[str, Any]
) -> tuple[np.ndarray, AttentionMap]:
    batch = collate([cut.ids(encoded.ids, kept)])
    output = model.network(batch.input_ids, output_attentions=True, **asked)
    before, after = (tuple(str(model.tokenizer.id_to_token(i)) for i in added) for added in (cut.prefix, cut.suffix))
    attention_map = AttentionMap(
        tokens=before + tuple(encoded.tokens[i] for i in kept) + after,
        spans=((0, 0),) * len(before) + tuple(encoded.spans[i] for i in kept) + ((0, 0),) * len(after),
        weights=torch.cat(output.attentions).numpy() if output.attentions else np.zeros((0, 0, 0, len(batch.input_ids[0]))),
    )
    return output.logits[0].numpy(), attention_map
