"""Phonemes of a text by espeak-ng, in IPA letters, with the punctuation marks where they were.

The library drops marks. So the text is cut at them first, and they are put back between the
phonemes. This module does not know what the phonemes are for.
"""

from __future__ import annotations

import re

from voiceloop.tts.espeak_ng import espeak_ng

_MARKS = re.compile(r"([;:,.!?…—]+(?:\s+|$))")


def phonemes(text: str, voice: str) -> str:
    """Return the IPA phonemes of `text`, as the espeak-ng voice called `voice` (`en-us`) says it.

    Raises ConfigError for a voice that does not exist.
    """
    espeak = espeak_ng()
    identifier = espeak.identifier(voice)
    said = [
        part if i % 2 else espeak.phonemes(part, identifier) if part else ""
        for i, part in enumerate(_MARKS.split(text))
    ]
    return "".join(said).strip()
