"""Pieces of text as labels: what cannot be seen is drawn, and nothing typed is taken for markup."""

import html

from core.records import AttentionMap, Span

LONGEST = 18
"""Characters of a label; a longer piece is cut. Labels stay unique, since each begins with its position."""

_VISIBLE = str.maketrans({" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u3000": "␣"})


def visible(piece: str) -> str:
    """`piece` with spaces, tabs and line breaks drawn; a piece of nothing printable is given as code points."""
    drawn = piece.translate(_VISIBLE)
    if drawn and any(character.isprintable() for character in drawn):
        return drawn
    return " ".join(f"U+{ord(character):04X}" for character in drawn) or "(empty)"


def shorten(piece: str, most: int = LONGEST) -> str:
    """At most so many characters of `piece`."""
    return piece if len(piece) <= most else piece[: most - 1] + "…"


def count(n: int | float, noun: str) -> str:
    """So many of what `noun` calls one."""
    return f"{n:,.0f} {noun}{'' if n == 1 else 's'}"


def literal(text: str) -> str:
    """Escape Plotly's pseudo-HTML and its LaTeX, which any two dollar signs would start where MathJax is loaded."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def piece(text: str, token: str, span: Span) -> str:
    """What a token stands for: its characters of the typed text, or its own name where it was added."""
    start, end = span
    return text[start:end] or token


def percent(share: float) -> str:
    """A probability with one decimal; what is not certain is not shown as certain."""
    if 0.9995 <= share < 1:
        return "over 99.9%"
    if 0 < share < 0.0005:
        return "under 0.1%"
    return f"{share:.1%}"


def interval(low: float, high: float) -> str:
    """What one may be 95% sure of, for a share."""
    return f"95% interval {low:.1%} to {high:.1%}"


def duration(seconds: float) -> str:
    """A time in the unit that a person would take, without false digits."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def token_labels(text: str, attention: AttentionMap) -> list[str]:
    """One label for each position, unique even where tokens repeat: its number, counted from 1, and its characters."""
    pieces = (piece(text, token, span) for token, span in zip(attention.tokens, attention.spans, strict=True))
    return [f"{position} {literal(shorten(visible(typed)))}" for position, typed in enumerate(pieces, 1)]
