import hashlib
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import ByteLevel as ByteLevelTrimmed

from core.config import SPECIAL_TOKENS
from core.data import tokenizer as wordpiece

PAD, UNK, CLS, MASK = range(4)

TRAIN_AND_HASH = """
import hashlib
from core.data import tokenizer
from core.data.sources import bundled
trained = tokenizer.train(bundled.imdb().texts[:1500], 3000)
print(hashlib.sha256(trained.to_str().encode()).hexdigest())
"""

CHINESE = [chr(0x4E00 + i) + chr(0x4E00 + (i * 7) % 2000) for i in range(2000)] * 2


def pieces(tokenizer, text):
    """Each token with what it came from."""
    encoded = wordpiece.encode(tokenizer, text)
    return [(token, text[start:end]) for token, (start, end) in zip(encoded.tokens, encoded.spans, strict=True)]


def test_special_tokens_have_the_first_ids(tokenizer):
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == [PAD, UNK, CLS, MASK] == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_reviews_give_the_same_tokenizer_in_any_process(tokenizer, seed):
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    answer = subprocess.run(
        [sys.executable, "-c", TRAIN_AND_HASH], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert answer.strip() == hashlib.sha256(tokenizer.to_str().encode()).hexdigest()


def test_the_order_of_the_reviews_does_not_matter(imdb, tokenizer):
    assert wordpiece.train(reversed(imdb.texts[:1500]), 3000).to_str() == tokenizer.to_str()
    # all of its characters are equally frequent, and half of them find no room
    assert wordpiece.train(reversed(CHINESE), 400).to_str() == wordpiece.train(CHINESE, 400).to_str()


def test_a_vocabulary_that_would_end_the_process_is_refused():
    assert wordpiece.train(["good film"] * 9, wordpiece.MOST_ENTRIES).get_vocab_size() < 30
    with pytest.raises(ValueError, match="vocab_size: got 1,000,001, expected at most 1,000,000"):
        wordpiece.train(["good film"] * 9, wordpiece.MOST_ENTRIES + 1)


@pytest.mark.parametrize("vocab_size", [8, 9, 100, 700])
@pytest.mark.parametrize("language", ["english", "chinese"])
def test_the_vocabulary_keeps_to_its_size(imdb, language, vocab_size):
    texts = imdb.texts[:200] if language == "english" else CHINESE
    trained = wordpiece.train(texts, vocab_size)
    assert sorted(trained.get_vocab().values()) == list(range(trained.get_vocab_size()))
    assert 4 < trained.get_vocab_size() <= vocab_size


def test_a_chinese_vocabulary_holds_more_than_a_thousand_characters():
    trained = wordpiece.train(CHINESE, 4000)
    assert UNK not in wordpiece.encode(trained, "".join(CHINESE)).ids


def test_a_corpus_of_nothing_knows_only_the_special_tokens():
    trained = wordpiece.train(["", " \n"], 100)
    assert trained.get_vocab_size() == 4
    assert wordpiece.encode(trained, "good [MASK]").ids.tolist() == [UNK] * 4  # good, [, mask, ]


def test_a_character_seen_once_is_unknown():
    trained = wordpiece.train(["aa aa aa", "b"], 100)
    assert pieces(trained, "a b") == [("a", "a"), ("[UNK]", "b")]


def test_pieces_by_hand(tokenizer):
    assert pieces(tokenizer, "The FILM isn't good.<br />Bad<BR>bad") == [
        ("the", "The"), ("film", "FILM"), ("isn", "isn"), ("'", "'"), ("t", "t"), ("good", "good"), (".", "."),
        ("bad", "Bad"), ("bad", "bad"),
    ]  # fmt: skip


def test_subwords_say_that_they_go_on_a_word(tokenizer):
    parts = pieces(tokenizer, "a filmx")
    assert [part for part, _ in parts[1:]] == ["film", "##x"]
    assert [typed for _, typed in parts[1:]] == ["film", "x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e\u0301te\u0301 film", ["e\u0301", "t", "e\u0301", "film"]),  # composed to two characters that are one each
        ("x\u0301 film", ["x\u0301", "film"]),  # there is no such composed character
        ("\u1112\u1161\u11ab film", ["\u1112\u1161\u11ab", "film"]),  # three jamo are one syllable
        ("I ❤️ this 🤗 film", ["I", "❤️", "this", "🤗", "film"]),
        ("👨\u200d👩\u200d👧 film", ["👨\u200d👩\u200d👧", "film"]),
        ("这部film", ["这", "部", "film"]),
        ("𠮷 film", ["𠮷", "film"]),
        ("？……film", ["？", "…", "…", "film"]),
        ("a\u200bb\x00 film", ["a\u200bb", "film"]),
        ("i ⭢ j", ["i", "⭢", "j"]),
        ("İ film", ["İ", "film"]),
    ],
)
def test_a_span_is_what_its_token_came_from(tokenizer, text, expected):
    typed = [typed for _, typed in pieces(tokenizer, text)]
    assert typed == expected


@pytest.fixture(scope="module")
def mark_tokenizer():
    """One that knows marks which compose with nothing, and so gives them tokens of their own."""
    return wordpiece.train(["x\u0301 x xx\u0301\u0327 e\u0301x f\u0308a \u0301e a\u0345 가x \u1112\u1161\u11ab"] * 3, 60)


def test_a_mark_with_a_token_of_its_own_is_left_to_it(mark_tokenizer):
    assert [typed for _, typed in pieces(mark_tokenizer, "e\u0301 f\u0308\u0301")] == ["e\u0301", "f\u0308", "\u0301"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b", ["a", " ", "b"]),
        (" a", [" ", "a"]),
        ("a   b ", ["a", " ", " ", "b", " "]),
        ("a b", ["a", "b"]),
        (" ", [" "]),
        ("e\u0301  b", ["e", "\u0301", "\u0301", " ", "b"]),  # a mark of two bytes
    ],
)
def test_a_token_of_a_space_alone_has_a_place(text, expected):
    letters = {letter: i for i, letter in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(letters | {"\u0120b": len(letters)}, [("\u0120", "b")]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = ByteLevelTrimmed(trim_offsets=True, add_prefix_space=False)
    assert [text[start:end] for start, end in wordpiece.encode(tokenizer, text).spans] == expected


def check_spans(tokenizer, text):
    encoded = wordpiece.encode(tokenizer, text)
    place = 0
    for token, (start, end) in zip(encoded.tokens, encoded.spans, strict=True):
        assert place <= start < end <= len(text)
        if token != "[UNK]":
            assert tokenizer.normalizer.normalize_str(text[start:end]).strip() == token.removeprefix("##")
        place = end
    assert encoded.ids.tolist() == [tokenizer.token_to_id(token) for token in encoded.tokens]
    assert not set(encoded.ids.tolist()) & {PAD, CLS, MASK}, "typed text is never special"


def test_spans_of_every_probe(tokenizer, probe):
    check_spans(tokenizer, probe)


@settings(max_examples=400)
@given(
    st.text(
        st.sampled_from(
            "ae<br />\u0301\u0327\u0308\u0345 fF\ufb01\u1112\u1161\u11ab가\u200d\ufe0f🤗İßσΣ部\u00e9\u0958\u2126-[]"
        )
        | st.characters(codec="utf-8")
    )
)
def test_spans_of_any_text(tokenizer, mark_tokenizer, text):
    check_spans(tokenizer, text)
    check_spans(mark_tokenizer, text)


def test_nothing_is_cut(tokenizer):
    assert len(wordpiece.encode(tokenizer, "the film " * 3000).ids) == 6000


@pytest.mark.parametrize("add_cls", [False, True])
def test_auto_tokenizer_gives_our_ids(tokenizer, tmp_path, probe, add_cls):
    from transformers import AutoTokenizer

    wordpiece.save(tokenizer, tmp_path, max_len=128, add_cls=add_cls)
    auto = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    ours = wordpiece.encode(tokenizer, probe).ids.tolist()
    added = [CLS] if add_cls else []
    assert auto(probe)["input_ids"] == added + ours
    assert auto(probe, truncation=True)["input_ids"] == (added + ours)[:128]
    assert wordpiece.encode(wordpiece.load(tmp_path), probe).ids.tolist() == ours


def test_auto_tokenizer_pads_as_we_do(tokenizer, tmp_path):
    from transformers import AutoTokenizer

    wordpiece.save(tokenizer, tmp_path, max_len=128, add_cls=False)
    auto = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    batch = auto(["good", "good [PAD] film"], padding=True)
    assert set(batch) == {"input_ids", "attention_mask"}
    width = len(batch["input_ids"][1])
    assert batch["input_ids"][0][1:] == [PAD] * (width - 1) and batch["attention_mask"][0] == [1] + [0] * (width - 1)
    assert batch["attention_mask"][1] == [1] * width and PAD not in batch["input_ids"][1]
    assert auto.mask_token_id == MASK and auto.unk_token_id == UNK and auto.cls_token_id == CLS


def test_saving_leaves_the_tokenizer_as_it_was(tokenizer, tmp_path):
    before = tokenizer.to_str()
    wordpiece.save(tokenizer, tmp_path, max_len=128, add_cls=True)
    assert tokenizer.to_str() == before and tokenizer.encode_special_tokens


def test_loading_forgets_padding_and_truncation(tokenizer, tmp_path):
    wordpiece.save(tokenizer, tmp_path, max_len=128, add_cls=False)
    stored = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    stored["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    (tmp_path / "tokenizer.json").write_text(json.dumps(stored), encoding="utf-8")
    assert len(wordpiece.encode(wordpiece.load(tmp_path), "the film the film").ids) == 4


@pytest.mark.parametrize("content", [None, "", "{}", '{"version": "1.0", "model": ', "\x00"])
def test_a_folder_without_a_sound_tokenizer_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json: (there is no such file|this is no readable tokeniser)"):
        wordpiece.load(tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="no readable tokeniser"):
        wordpiece.load(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n\t ", "\u200b\ufeff", "<br />", " <BR/>\u00ad<br>", "\x00\ufffd", "\ue000"),
        *("a", "br", "<br", "<br/ >", "...", "\u200b3", "\u0301", "🤗", "\u2060x<br />", "这", "<br />ب", "\u3164", "\u00b2"),
    ],
)
def test_a_blank_text_is_one_without_a_token(tokenizer, text):
    assert wordpiece.is_blank(text) == (len(wordpiece.encode(tokenizer, text).ids) == 0)


@given(text=st.text(st.sampled_from("<brBR />a1.\u200b\ufeff\u00ad\u0301\u2060\x00這🤗"), max_size=12))
def test_any_blank_text_is_one_without_a_token(tokenizer, text):
    assert wordpiece.is_blank(text) == (len(wordpiece.encode(tokenizer, text).ids) == 0)


def test_training_and_encoding_need_neither_torch_nor_transformers():
    code = "import sys, core.data.tokenizer, core.data.corpus, core.data.reviews, core.data.splits; "
    code += "assert not {'torch', 'transformers', 'datasets'} & sys.modules.keys()"
    subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, check=True
    )
