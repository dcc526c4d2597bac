"""Which encoding the bytes of a text file are in."""

import re

import charset_normalizer

_BOMS = {  # UTF-32 first: its little-endian mark begins with that of UTF-16
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xef\xbb\xbf": "UTF-8-sig",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_LEGACY = {
    "cp1252": "Windows-1252",
    "cp1251": "Windows-1251 (Cyrillic)",
    "gb18030": "GB 18030 (Chinese)",
    "big5": "Big5 (Chinese)",
    "cp932": "Shift JIS (Japanese)",
    "cp949": "code page 949 (Korean)",
}
_SAMPLE = 65_536  # bytes
_ASCII = bytes(range(128))
_PLAIN_LETTER = re.compile(rb"[A-Za-z]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_NO_TEXT = "got characters that only machines write, so this is no table of text; save the table as CSV, UTF-8"


def decode(content: bytes) -> tuple[str, str]:
    """The text and a sentence on its encoding: what the byte order mark says, else UTF-8, else the likeliest older one.

    Windows-1252 is the last resort. Bytes that are no text in it, as those of pictures or programs, are a ValueError.
    """
    for mark, encoding in _BOMS.items():
        if content.startswith(mark):
            return _strict(content, encoding), f"{encoding.removesuffix('-sig')}, as its byte order mark says"
    if b"\0" in content:
        encoding = _utf16_without_mark(content)
        return _strict(content, encoding), f"{encoding}, since every other byte of its plain letters is zero"
    if _is_utf8(content):
        return content.decode(), "UTF-8"
    encoding = _legacy(content)
    text = _strict(content, encoding)
    if _CONTROL.search(text):
        raise ValueError(_NO_TEXT)
    return text, f"{_LEGACY[encoding]}, since it is no UTF-8"


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _strict(content: bytes, encoding: str) -> str:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise ValueError(
            f"got byte 0x{byte:02x} in line {line}, which is neither UTF-8 nor {encoding}; save the file as UTF-8"
        ) from error
    if "\0" in text:
        raise ValueError(_NO_TEXT)
    return text


def _utf16_without_mark(content: bytes) -> str:
    """By where the zeros are: most characters of a table, its delimiters at least, have one in their upper byte."""
    even, odd = content[::2].count(0), content[1::2].count(0)
    return "UTF-16-LE" if odd > even else "UTF-16-BE"


def _legacy(content: bytes) -> str:
    """Windows-1252 for lines of mostly plain letters; for others the likeliest, told by how often its letters are written."""
    lines = [line for line in content.split(b"\n") if not line.isascii()]
    sample = b"\n".join(lines)[:_SAMPLE]
    if len(sample) == _SAMPLE and b"\n" in sample:
        sample = sample[: sample.rindex(b"\n")]  # half a character at the end would rule its encoding out
    plain = len(_PLAIN_LETTER.findall(sample))
    if len(sample.translate(None, _ASCII)) < plain / 2:
        return "cp1252"
    best = charset_normalizer.from_bytes(sample, cp_isolation=list(_LEGACY)).best()
    return best.encoding if best and best.encoding in _LEGACY else "cp1252"
