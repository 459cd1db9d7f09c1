"""Text on its way to a terminal: whatever comes from files, models and peers is made harmless."""

from __future__ import annotations

import sys
import unicodedata
from typing import TextIO


def printable(text: str) -> str:
    """`text` on one line, with everything that could steer a terminal written out as an escape.

    That is control characters, lone surrogates, and the marks that reverse the direction of text.
    """
    return "".join(_escaped(char) for char in text)


def tell(line: str, stream: TextIO | None = None) -> None:
    """Print a line that may hold anything; on stdout, unless another stream is given."""
    print(printable(line), file=stream or sys.stdout, flush=True)


def _escaped(char: str) -> str:
    if char in "\t\r\n":
        return " "
    steers = unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _BIDI
    return char.encode("unicode_escape").decode("ascii") if steers else char


_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
