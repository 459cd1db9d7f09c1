"""Phonemes of a text by espeak-ng, in letters of the IPA, with the marks where they were.

The library leaves marks out and breaks at them, so the text is cut there first. This module does
not know what the phonemes are for.
"""

from __future__ import annotations

import re

from voiceloop.tts.espeak_ng import espeak_ng

_MARKS = re.compile(r"([;:,.!?…—]+(?:\s+|$))")


def phonemes(text: str, voice: str) -> str:
    """How `text` sounds, said by the voice of espeak-ng that goes by that name, such as `en-us`.

    Raises ConfigError for a voice that there is not.
    """
    espeak = espeak_ng()
    identifier = espeak.identifier(voice)
    said = [
        part if i % 2 else espeak.phonemes(part, identifier) if part else ""
        for i, part in enumerate(_MARKS.split(text))
    ]
    return "".join(said).strip()
