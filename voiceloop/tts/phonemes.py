"""Phonemes of a text by espeak-ng, in letters of the IPA, with the marks where they were.

The library leaves marks out and breaks at them, so the text is cut there first. This module does
not know what the phonemes are for.
"""

from __future__ import annotations

import ctypes
import re

from voiceloop.tts.espeak import _LOCK, _library

_UTF8, _IPA = 1, 2
_MARKS = re.compile(r"([;:,.!?…—]+(?:\s+|$))")


def phonemes(text: str, voice: str) -> str:
    """How `text` sounds, said by the espeak-ng voice of that code, such as `en-us`."""
    said = [
        part if i % 2 else _said(part, voice) if part else ""
        for i, part in enumerate(_MARKS.split(text))
    ]
    return "".join(said).strip()


def _said(text: str, voice: str) -> str:
    with _LOCK:
        library = _library()
        lib = library._lib
        lib.espeak_TextToPhonemes.restype = ctypes.c_char_p
        lib.espeak_SetVoiceByName(library.voices[voice].encode())
        held = ctypes.create_string_buffer(text.encode())
        rest = ctypes.c_void_p(ctypes.addressof(held))
        said = list[str]()
        while rest.value:  # it moves on by a clause, and is empty behind the last
            told = lib.espeak_TextToPhonemes(ctypes.byref(rest), _UTF8, _IPA)
            said.append((told or b"").decode().strip())
    return " ".join(filter(None, said))
