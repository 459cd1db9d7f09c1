"""The wake word of `voiceloop talk`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from voiceloop.config import Config
from voiceloop.errors import ConfigError

if TYPE_CHECKING:
    from voiceloop.engines import Engines
    from voiceloop.wake.acoustic import SoundedWord
    from voiceloop.wake.microphone import WakeWord
    from voiceloop.wake.phrase import Phrase


def configured_word(settings: Config) -> Phrase | SoundedWord | None:
    """Return what has to be said before anything is heard; None for nothing.

    Raises ConfigError for a phrase that cannot be found, and the errors of `sounded_word`.
    """
    wake = settings.wake
    if wake.phrase and wake.model:
        raise ConfigError(
            "wake.phrase and wake.model are both set, and one of them is to be said",
            "leave one of them empty",
        )
    if wake.model:
        from voiceloop.wake.acoustic import sounded_word

        return sounded_word(wake.model)
    if wake.phrase:
        from voiceloop.wake.phrase import Phrase

        return Phrase(wake.phrase)
    return None


def prepared(
    word: Phrase | SoundedWord, engines: Engines, settings: Config
) -> tuple[WakeWord, Engines]:
    """Return a wake word that can be found, and the engines for the session.

    A phrase is found by the recogniser, which leaves it out of what the user says to the session.
    """
    from voiceloop.loading import load_vad
    from voiceloop.wake.addressed import AddressedAsr
    from voiceloop.wake.phrase import Phrase
    from voiceloop.wake.spoken import SpokenPhrase

    if not isinstance(word, Phrase):
        return word, engines
    found = SpokenPhrase(word, load_vad(settings), engines, settings.turns)
    asr = AddressedAsr(engines.asr, word, lambda: found.said_until)
    return found, replace(engines, asr=asr)
