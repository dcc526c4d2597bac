import random

import pytest

from core.data.encoding import decode

GERMAN = "text;label\nschön und gut;1\nein übler Film, größte Enttäuschung;0\n"
FRENCH = "texte;note\nC’était très beau, à voir – vraiment;1\nnul, décevant, ça ne vaut rien;0\n"
SPANISH = "texto;nota\n¡Qué película más buena! Lo mejor del año;1\nmalísima;0\n"
CHINESE = "label,review\n1,商务大床房，房间很大，整体感觉经济实惠不错!\n0,早餐太差，无论去多少人，那边也不加食品的。\n"
RUSSIAN = "text;label\nотличный фильм, всем советую посмотреть;1\nужасное кино, жаль времени;0\n"
JAPANESE = "text,label\nとても良い映画でした。,1\n最悪の時間だった。もう見ない。,0\n"
KOREAN = "text,label\n정말 좋은 영화였습니다,1\n최악의 시간이었다 다시는 안 본다,0\n"


@pytest.mark.parametrize("text", [GERMAN, CHINESE, "text,label\ngood,1\n", "🤗"])
@pytest.mark.parametrize(
    ("encoding", "mark", "sentence"),
    [
        ("utf-8", b"", "UTF-8"),
        ("utf-8", b"\xef\xbb\xbf", "UTF-8, as its byte order mark says"),
        ("utf-16-le", b"\xff\xfe", "UTF-16, as its byte order mark says"),
        ("utf-16-be", b"\xfe\xff", "UTF-16, as its byte order mark says"),
        ("utf-32-le", b"\xff\xfe\0\0", "UTF-32, as its byte order mark says"),
        ("utf-32-be", b"\0\0\xfe\xff", "UTF-32, as its byte order mark says"),
    ],
)
def test_unicode_is_read_with_its_mark_or_as_utf8(text, encoding, mark, sentence):
    assert decode(mark + text.encode(encoding)) == (text, sentence)


@pytest.mark.parametrize("text", [GERMAN, CHINESE, "text,label\ngood,1\n"])
@pytest.mark.parametrize("order", ["LE", "BE"])
def test_utf16_without_a_mark_is_told_by_its_zeros(text, order):
    found, sentence = decode(text.encode(f"utf-16-{order}"))
    assert found == text and sentence.startswith(f"UTF-16-{order}, since")


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        *(
            (text, "cp1252", "Windows-1252")
            for text in (GERMAN, FRENCH, SPANISH, "text;label\nschön;1\n", "it’s a “great” film, €5")
        ),
        (CHINESE, "gb18030", "GB 18030 (Chinese)"),
        (RUSSIAN, "cp1251", "Windows-1251 (Cyrillic)"),
        (JAPANESE, "cp932", "Shift JIS (Japanese)"),
        (KOREAN, "cp949", "code page 949 (Korean)"),
    ],
)
def test_an_older_encoding_is_told_by_its_letters(text, encoding, name):
    assert decode(text.encode(encoding)) == (text, f"{name}, since it is no UTF-8")


def test_letters_that_come_late_are_seen():
    text = "text,label\n" + "good,1\n" * 50_000 + CHINESE * 2000
    assert decode(text.encode("gb18030"))[0] == text


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [40, 5000])
def test_bytes_of_no_text_are_refused(seed, size):
    with pytest.raises(ValueError, match="as CSV, UTF-8|save the file as UTF-8"):
        decode(b"\x89\x00\x01" + random.Random(seed).randbytes(size))


def test_characters_that_only_machines_write_are_refused():
    assert decode(b"text,label\na caf\xe9 by the sea,1\n")[0].endswith("café by the sea,1\n")
    with pytest.raises(ValueError, match="characters that only machines write"):
        decode(b"text,label\na caf\xe9 by the \x01sea,1\n")


@pytest.mark.parametrize("before", range(4))
def test_a_character_cut_by_the_end_of_the_sample_rules_nothing_out(before):
    text = "x" * before + "商务大床房房间很大" * 2000 + "\n" + CHINESE * 1000
    assert decode(text.encode("gb18030"))[0] == text


def test_a_byte_that_no_encoding_has_is_named():
    with pytest.raises(ValueError, match="got byte 0x81 in line 2, which is neither UTF-8 nor cp1252; save the file as UTF-8"):
        decode(b"text,label\na line with \x81 in it\n")


def test_the_rest_of_a_marked_text_must_be_text():
    with pytest.raises(ValueError, match="in line 2, which is neither UTF-8 nor UTF-8-sig"):
        decode(b"\xef\xbb\xbftext\n\xff")
