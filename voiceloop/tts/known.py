"""Checks the configured voice by its files alone, before anything large is loaded."""

from __future__ import annotations

from voiceloop.config import TtsConfig


def check_voice(config: TtsConfig) -> None:
    """Check the configured voice of espeak, Piper or Kokoro without loading the engine.

    Raises ConfigError if the engine does not have the voice. Raises the errors of loading if a file
    of the voice is missing or damaged. Other engines know their voices only once they are loaded.
    """
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
