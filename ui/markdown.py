"""Foreign text inside the page's own Markdown."""

import re

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def literal(text: str) -> str:
    """`text` with every sign escaped that Markdown, LaTeX, colours or icons could begin with."""
    return _PUNCTUATION.sub(r"\\\1", text)
