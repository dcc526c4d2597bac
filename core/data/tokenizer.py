"""WordPiece (arXiv:1609.08144) over lower-cased Unicode words, with spans in the typed text.

What the vocabulary cannot spell is an honest [UNK], and "##" says that a token goes on a word. Lower case keeps a small
vocabulary rich.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import regex
from jaxtyping import Int32
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import NFC, BertNormalizer, Replace, Sequence
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

from core.config import SPECIAL_TOKENS
from core.records import Span

MOST_ENTRIES = 1_000_000
"""Of a vocabulary: four times that of the largest multilingual models."""
_GRAPHEME = regex.compile(r"\X")
_TO_A_LETTER_OR_DIGIT = regex.compile(r"(?i)(?:<br\s*/?>|[^\p{L}\p{N}])*+[\p{L}\p{N}]")
_NORMALIZER = Sequence(
    [
        Replace(Regex(r"(?i)<br\s*/?>"), " "),
        NFC(),
        BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=True),
    ]
)


def train(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A tokeniser of at most `vocab_size` entries, fewer for a small corpus; the same texts give the same one to the byte.

    More than `MOST_ENTRIES` are a ValueError: room is made for all of them at once, and where there is none the process ends.
    """
    assert vocab_size > len(SPECIAL_TOKENS)
    if vocab_size > MOST_ENTRIES:
        raise ValueError(f"vocab_size: got {vocab_size:,}, expected at most {MOST_ENTRIES:,}")
    texts = list(texts)
    trainee = _tokenizer({})
    characters, continuations = _alphabet(trainee, texts, vocab_size // 2)
    # Ties between equally frequent pairs go to the lower ids, so characters get theirs here: the trainer would number
    # them, and choose between equally rare ones, in the order of a randomly seeded hash table.
    trainer = WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        show_progress=False,
        special_tokens=[*SPECIAL_TOKENS, *characters, *continuations],
        initial_alphabet=characters,
        limit_alphabet=len(characters),
    )
    trainee.train_from_iterator(texts, trainer)
    vocabulary = trainee.get_vocab()
    assert len(vocabulary) <= vocab_size, f"{len(vocabulary)} entries for {vocab_size}"
    return _tokenizer(vocabulary)


def _tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = _NORMALIZER
    tokenizer.pre_tokenizer = BertPreTokenizer()
    if vocabulary:
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.encode_special_tokens = True  # a typed "[PAD]" is ordinary text
    return tokenizer


def _alphabet(tokenizer: Tokenizer, texts: list[str], size: int) -> tuple[list[str], list[str]]:
    """The most frequent characters and, with "##", those of them that go on a word: at most `size` entries together."""
    chunks = Counter(chunk for text in texts for chunk in tokenizer.normalizer.normalize_str(text).split())
    counts, inside = Counter(), set()
    for chunk, n in chunks.items():
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(chunk):
            counts.update({character: n * word.count(character) for character in set(word)})
            inside.update(word[1:])
    kept = []
    for character in sorted(counts, key=lambda character: (-counts[character], character)):
        size -= 2 if character in inside else 1
        if size < 0 or counts[character] < 2:
            break
        kept.append(character)
    return sorted(kept), sorted(f"##{character}" for character in kept if character in inside)


def is_blank(text: str) -> bool:
    """Whether no token stands for the text: white space, break tags and characters that show nothing."""
    if _TO_A_LETTER_OR_DIGIT.match(text):  # nearly all have one, and normalising a whole table takes seconds
        return False
    return not _NORMALIZER.normalize_str(text).strip()


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A text as tokens: no special ones, nothing cut."""

    ids: Int32[np.ndarray, "T"]
    tokens: tuple[str, ...]
    spans: tuple[Span, ...]
    """What of the typed text each token came from: `text[start:end]`."""


def encode(tokenizer: Tokenizer, text: str) -> Encoded:
    """The tokens of one text with their places in it."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    return Encoded(
        ids=np.array(encoding.ids, dtype=np.int32),
        tokens=tuple(encoding.tokens),
        spans=_whole_characters(text, _with_spaces(encoding.offsets)),
    )


def _with_spaces(spans: list[Span]) -> list[Span]:
    """Spans of which none is empty: a byte-level tokeniser trims spaces, of a token of spaces alone all there is."""
    pairs = pairwise([(0, 0), *spans])
    return [(min(before, start) if start == end else start, end) for (_, before), (start, end) in pairs]


def _whole_characters(text: str, spans: list[Span]) -> tuple[Span, ...]:
    """Spans that end where a character as people see it ends: composing "e" and "\u0301" leaves the mark to no token."""
    if unicodedata.is_normalized("NFC", text):
        return tuple(spans)
    ends = {i: match.end() for match in _GRAPHEME.finditer(text) for i in range(match.start() + 1, match.end())}
    limits = [start for start, _ in spans[1:]] + [len(text)]
    return tuple((start, max(end, min(ends.get(end, end), limit))) for (start, end), limit in zip(spans, limits, strict=True))


def save(tokenizer: Tokenizer, folder: Path, *, max_len: int, add_cls: bool) -> None:
    """Write tokenizer.json and tokenizer_config.json, from which `AutoTokenizer` gives the ids that the model is fed."""
    from transformers import PreTrainedTokenizerFast  # half a second, and only needed here

    stored = Tokenizer.from_str(tokenizer.to_str())
    if add_cls:
        stored.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", SPECIAL_TOKENS.index("[CLS]"))])
    PreTrainedTokenizerFast(
        tokenizer_object=stored,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        mask_token="[MASK]",
        model_max_length=max_len,
        model_input_names=["input_ids", "attention_mask"],
        padding_side="right",
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,
    ).save_pretrained(folder)


def load(folder: Path) -> Tokenizer:
    """The tokeniser of a model folder; a ValueError where tokenizer.json is missing or damaged."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file, expected the tokeniser of a model")
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises nothing more special
        raise ValueError(f"{path}: this is no readable tokeniser: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer
