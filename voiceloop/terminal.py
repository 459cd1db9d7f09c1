"""Prepares text for a terminal: makes what comes from elsewhere safe, and sizes readable."""

from __future__ import annotations

import sys
import unicodedata
from typing import TextIO


def printable(text: str) -> str:
    """Return `text` on one line, with escapes for characters that could control a terminal.

    These are control characters, lone surrogates, and marks that change the direction of text.
    """
    return "".join(_escaped(char) for char in text)


def tell(line: str, stream: TextIO | None = None) -> None:
    """Print a line that may contain anything, made printable, on `stream` or on stdout."""
    print(printable(line), file=stream or sys.stdout, flush=True)


def size(count: float) -> str:
    """Return a number of bytes as text for a person: `98.4 MB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _escaped(char: str) -> str:
    if char in "\t\r\n":
        return " "
    steers = unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _BIDI
    return char.encode("unicode_escape").decode("ascii") if steers else char


_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
