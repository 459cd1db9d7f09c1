"""The text of a clause as synthesizers read it."""

from __future__ import annotations

import re

from voiceloop.tts.edges import PAUSE_MS
from voiceloop.types import Clause

# espeak-ng reads commands after control characters, and no engine takes half a surrogate pair.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def sayable(clause: Clause) -> str:
    """Return the text of a clause for a synthesizer; empty if it has no letters or digits.

    Characters keep their positions. If the reply goes on after a clause without a mark, the clause
    gets a comma. Otherwise it would sound like the end of a sentence.
    """
    text = _UNSAFE.sub(" ", clause.spoken).rstrip()
    if not any(map(str.isalnum, text)):
        return ""
    return text if clause.last or text[-1] in PAUSE_MS else f"{text},"


def middle(text: str) -> int:
    """Return the index at which to split `text`. It is near the middle, after a mark if possible,
    otherwise after a word."""
    middle = len(text) // 2
    gaps = [i for i, char in enumerate(text) if char.isspace() and 0 < i]
    marks = [i for i in gaps if text[i - 1] in PAUSE_MS and abs(i - middle) < middle / 2]
    return min(marks or gaps or [middle], key=lambda i: abs(i - middle))
