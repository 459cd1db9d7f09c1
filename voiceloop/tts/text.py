"""What synthesizers are given to read of a clause."""

from __future__ import annotations

import re

from voiceloop.tts.edges import PAUSE_MS
from voiceloop.types import Clause

# espeak-ng reads commands behind control characters, and none can be given half a surrogate pair.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def sayable(clause: Clause) -> str:
    """The clause's words, as many characters as they are; empty where none of them is a word.

    One that simply goes on ends with a comma, or it would sound like the end of the sentence.
    """
    text = _UNSAFE.sub(" ", clause.spoken).rstrip()
    if not any(map(str.isalnum, text)):
        return ""
    return text if clause.last or text[-1] in PAUSE_MS else f"{text},"
