"""Many reviews as token ids, tokenised once and kept on disk."""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import platformdirs
import tokenizers
from jaxtyping import Int32, Int64
from tokenizers import Tokenizer

BATCH = 1000
"""Reviews tokenised at a time: their encodings take far more memory than their ids."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The ids of all reviews end to end; review `i` is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Int32[np.ndarray, "ids"]
    """Read-only and mapped from the file, so that processes share them."""
    offsets: Int64[np.ndarray, "offsets"]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Int32[np.ndarray, "T"]:
        """The ids of one review, uncut and without special tokens."""
        i = range(len(self))[i]
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> Int64[np.ndarray, "N"]:
        """Tokens of each review."""
        return np.diff(self.offsets)


def encode_corpus(tokenizer: Tokenizer, texts: Sequence[str], *, cache: Path | None = None) -> Corpus:
    """The tokens of all texts, from the cache where these texts were tokenised alike before.

    The cache is the folder of the environment variable ATTENTION_LAB_CACHE, else the user's; one that cannot be written is
    a ValueError.
    """
    folder = (cache or cache_folder()) / "corpora"
    name = _fingerprint(tokenizer, texts)
    corpus = _read(folder, name, len(texts))
    if corpus is None:
        _write(folder, name, *_encode(tokenizer, texts))
        corpus = _read(folder, name, len(texts))
        assert corpus is not None
    return corpus


def cache_folder() -> Path:
    """Where what can be computed anew is kept."""
    return Path(os.environ.get("ATTENTION_LAB_CACHE") or platformdirs.user_cache_path("attention-lab"))


def _fingerprint(tokenizer: Tokenizer, texts: Sequence[str]) -> str:
    assert tokenizer.encode_special_tokens, "its JSON does not tell this apart"
    digest = hashlib.sha256(f"{tokenizers.__version__} {tokenizer.to_str()}".encode())
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()[:32]


def _encode(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Int32[np.ndarray, "ids"], Int64[np.ndarray, "offsets"]]:
    pieces = [np.zeros(0, np.int32)]
    lengths = [0]
    for start in range(0, len(texts), BATCH):
        for encoding in tokenizer.encode_batch_fast(list(texts[start : start + BATCH]), add_special_tokens=False):
            pieces.append(np.array(encoding.ids, dtype=np.int32))
            lengths.append(len(encoding.ids))
    return np.concatenate(pieces), np.cumsum(lengths, dtype=np.int64)


def _read(folder: Path, name: str, n: int) -> Corpus | None:
    """The corpus of that name; None where there is none or it is damaged."""
    try:
        ids = np.load(folder / f"{name}.ids.npy", mmap_mode="r")
        offsets = np.load(folder / f"{name}.offsets.npy")
    except (OSError, EOFError, ValueError):
        return None
    if len(offsets) != n + 1 or offsets[-1] != len(ids):
        return None
    return Corpus(ids=ids, offsets=offsets)


def _write(folder: Path, name: str, ids: Int32[np.ndarray, "ids"], offsets: Int64[np.ndarray, "offsets"]) -> None:
    """Write beside and rename, so that a reader or a second writer never meets half a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, array in (("ids", ids), ("offsets", offsets)):
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                np.save(file, array)
            os.replace(file.name, folder / f"{name}.{kind}.npy")
    except OSError as error:
        raise ValueError(
            f"cache folder {folder}: cannot write there ({error}); set ATTENTION_LAB_CACHE to a folder that can be written"
        ) from error
