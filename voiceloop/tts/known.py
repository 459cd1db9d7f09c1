"""Checks the configured voice by its files alone, before anything large is loaded."""

from __future__ import annotations

from pathlib import PurePath

from voiceloop.catalog.names import VOICES
from voiceloop.catalog.store import ModelStore, cards
from voiceloop.errors import ConfigError
from voiceloop.languages.voices import described
from voiceloop.settings.config import TtsConfig


def check_voice(config: TtsConfig) -> None:
    """Check the configured voice of espeak, Piper or Kokoro without loading the engine.

    Raises ConfigError if the engine does not have the voice. Its hint names a voice of another
    engine that is meant, for example by the speaker's name. Raises the errors of loading if a file
    of the voice is missing or damaged. Other engines know their voices only once they are loaded.
    """
    try:
        _check(config)
    except ConfigError as error:
        raise ConfigError(error.message, _meant(config.voice) or error.hint) from error


def _meant(name: str) -> str:
    """Return a hint for the voice of Piper or Kokoro that `name` names, in full or by the name of
    the speaker (`Joe`); empty if there is none."""
    for card in cards():
        files = [PurePath(file.name) for file in card.files]
        voices = [file.stem for file in files if file.parent.name == "voices"] or [card.name]
        for voice in voices if card.kind in VOICES else ():
            speaker = described(voice, "").label.partition(",")[0]
            if name.lower() in (voice.lower(), speaker.lower()):
                flags = f"--tts.engine {card.kind} --tts.voice {voice}"
                if ModelStore().find(card.name):
                    return f"did you mean {flags}?"
                return f"voiceloop models pull {card.name}, then {flags}"
    return ""


def _check(config: TtsConfig) -> None:
    match config.engine:
        case "espeak":
            from voiceloop.tts.espeak import espeak

            espeak(config)
        case "piper":
            from voiceloop.tts import piper

            piper.check_voice(config)
        case "kokoro":
            from voiceloop.tts import kokoro

            kokoro.check_voice(config)
        case _:
            pass
