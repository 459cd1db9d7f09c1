"""The wake word of `voiceloop talk`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from voiceloop.config import Config
from voiceloop.errors import ConfigError

if TYPE_CHECKING:
    from voiceloop.audio.devices import Microphone
    from voiceloop.audio.lasting import LastingSpeaker
    from voiceloop.commands.conversation import TerminalConversation
    from voiceloop.engines import Engines
    from voiceloop.wake.acoustic import SoundedWord
    from voiceloop.wake.microphone import WakeMicrophone, WakeWord
    from voiceloop.wake.phrase import Phrase


def configured_word(settings: Config) -> Phrase | SoundedWord | None:
    """Return the configured wake word or wake phrase; None if there is none.

    Raises ConfigError if both are configured, and for a phrase with too few or too many letters.
    For a wake word, also raises the errors of `voiceloop.wake.acoustic.sounded_word`.
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
    """Return the detector of `word` and the engines for the session.

    The recogniser of `engines` finds a wake phrase. Then the returned engines have a recogniser
    that leaves the phrase out of the user's words. For a wake word they are `engines` unchanged.
    """
    from voiceloop.loading import load_vad
    from voiceloop.wake.phrase import AddressedAsr, Phrase
    from voiceloop.wake.spoken import SpokenPhrase

    if not isinstance(word, Phrase):
        return word, engines
    found = SpokenPhrase(word, load_vad(settings), engines, settings.turns)
    asr = AddressedAsr(engines.asr, word, lambda: found.said_until)
    return found, replace(engines, asr=asr)


def wake_microphone(
    word: Phrase | SoundedWord,
    microphone: Microphone,
    speaker: LastingSpeaker,
    terminal: TerminalConversation,
    settings: Config,
) -> WakeMicrophone:
    """Return a microphone that passes on the sound of `microphone` only after `word` was said.

    The speaker plays a chime when the microphone wakes or falls asleep. This also replaces the
    engines of `terminal` by those of `prepared`, and tells the user what to say.
    """
    from voiceloop.wake.microphone import WakeMicrophone
    from voiceloop.wake.phrase import chime

    found, terminal.engines = prepared(word, terminal.engines, settings)
    open_s = settings.wake.open_s
    terminal.note(f'say "{found.name}" to be heard, until {open_s:g} s after the last turn')

    def sound(awake: bool) -> None:
        speaker.overlay(chime(speaker.rate, opens=awake))

    return WakeMicrophone(microphone, found, open_s, sound)
