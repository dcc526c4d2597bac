"""Foreign text inside the page's own Markdown."""

import re

_WORD = re.compile(r"[a-z]+,?(?=\s|$)")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def literal(text: str) -> str:
    """`text` with every sign escaped that Markdown, LaTeX, colours or icons could begin with."""
    return _PUNCTUATION.sub(r"\\\1", text)


def sentence(text: str) -> str:
    """`text` as a sentence, escaped: it begins with a capital, unless it does with the name of a file or of a knob."""
    start = text[:1].upper() if _WORD.match(text) else text[:1]
    return literal(f"{start}{text[1:].rstrip('.')}.")
