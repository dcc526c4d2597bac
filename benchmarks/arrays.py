"""Reviews as one file of arrays, so that a machine without network and without this lab's other packages can be measured.

`python -m benchmarks.arrays` writes .cache/arrays.npz: IMDB, split and tokenised as for a training.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from benchmarks.suite import ARRAYS, Setting
from core.config import SPECIAL_TOKENS

VOCABULARY = 20_000
LONGEST = 512
"""Tokens kept of a review."""
TEXTS = 512
"""Test reviews of which the text is kept, too."""
SIDES = ("train", "validation", "test")


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """The reviews of all sides, one side after the other."""

    ids: Int[np.ndarray, "ids"]
    offsets: Int[np.ndarray, "ends"]
    """Review i is ids[offsets[i]:offsets[i + 1]]."""
    labels: Int[np.ndarray, "n"]
    counts: Int[np.ndarray, "3"]
    """Reviews of training, validation and test."""
    texts: list[str]
    """Of the first test reviews."""
    tokenizer: str
    """tokenizer.json."""

    def reviews(self, side: str, longest: int, start: int = 0, n: int | None = None) -> list[Int[np.ndarray, "_"]]:
        """The first tokens of `n` reviews of a side, from `start` on and from the first again after the last."""
        ends = ((self.offsets[i], self.offsets[i + 1]) for i in self._places(side, start, n))
        return [self.ids[begin : min(begin + longest, end)] for begin, end in ends]

    def classes(self, side: str, start: int = 0, n: int | None = None) -> Int[np.ndarray, "_"]:
        """The classes of the same reviews."""
        return self.labels[list(self._places(side, start, n))]

    def _places(self, side: str, start: int, n: int | None) -> Iterator[int]:
        index = SIDES.index(side)
        before, count = int(self.counts[:index].sum()), int(self.counts[index])
        return (before + (start + i) % count for i in range(count if n is None else n))


def made(limit: int | None = None) -> Arrays:
    """Loads, splits and tokenises IMDB."""
    from core.config import DataConfig
    from core.data import tokenizer as tokenizers
    from core.data.reviews import load
    from core.data.splits import split

    splits = split(load(DataConfig(limit=limit), seed=0))
    tokenizer = tokenizers.train(splits.train.texts, VOCABULARY)
    rng = np.random.default_rng(0)  # IMDB lies in the order of its labels, and the first few would be of one class
    sides = [side.take(rng.permutation(len(side)).tolist()) for side in (getattr(splits, name) for name in SIDES)]
    encoded = [
        np.array(encoding.ids[:LONGEST] or [SPECIAL_TOKENS.index("[UNK]")], dtype=np.uint16)
        for side in sides
        for encoding in tokenizer.encode_batch_fast(side.texts, add_special_tokens=False)
    ]
    return Arrays(
        ids=np.concatenate(encoded),
        offsets=np.cumsum([0, *map(len, encoded)]),
        labels=np.concatenate([side.labels for side in sides]),
        counts=np.array([len(side) for side in sides]),
        texts=sides[-1].texts[:TEXTS],
        tokenizer=tokenizer.to_str(),
    )


def save(arrays: Arrays, path: Path) -> None:
    """Numbers alone: texts and tokeniser are the bytes of JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = {name: value for name, value in vars(arrays).items() if isinstance(value, np.ndarray)}
    words = {name: np.frombuffer(json.dumps(vars(arrays)[name]).encode(), np.uint8) for name in ("texts", "tokenizer")}
    with path.open("wb") as file:
        np.savez_compressed(file, **numbers, **words)


def load(path: Path) -> Arrays:
    """What `save` wrote. ValueError if there is none."""
    if not path.is_file():
        raise ValueError(f"{path}: there are no arrays; write them by python -m benchmarks.arrays")
    with np.load(path) as file:
        found = dict(file)
    words = {name: json.loads(found.pop(name).tobytes()) for name in ("texts", "tokenizer")}
    return Arrays(**{name: values.astype(np.int64) for name, values in found.items()}, **words)


def of(setting: Setting) -> Arrays:
    """Those that the setting names."""
    return load(Path(setting.arrays))


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, help="reviews to take; all by default")
    parser.add_argument("--out", type=Path, default=ARRAYS)
    asked = parser.parse_args()
    arrays = made(asked.limit)
    save(arrays, asked.out)
    print(f"{asked.out}: {len(arrays.labels):,} reviews, {asked.out.stat().st_size / 2**20:.1f} MiB", file=sys.stderr)


if __name__ == "__main__":
    main()
