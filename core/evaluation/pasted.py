"""Many reviews in one text."""

import re

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK_LINES = re.compile(r"\n[ \t]*\n")


def split_pasted(text: str, *, by_blank_lines: bool) -> list[str]:
    """The reviews of a text: one a line, or parted by blank lines. What is white space alone is none."""
    text = _LINE_END.sub("\n", text)
    pieces = _BLANK_LINES.split(text) if by_blank_lines else text.split("\n")
    return [piece.strip() for piece in pieces if piece.strip()]
