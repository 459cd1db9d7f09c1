"""Checks a recogniser's settings before its model is loaded: reads small files and looks for
devices."""

from __future__ import annotations

from pathlib import Path

from voiceloop.bundled import bundled
from voiceloop.catalog.names import find
from voiceloop.errors import ConfigError
from voiceloop.foreign import parsed
from voiceloop.languages import AUTO
from voiceloop.placement import chosen_device
from voiceloop.settings.config import AsrConfig

MULTILINGUAL = 51_865
"""Minimum number of tokens of a multilingual Whisper model. CTranslate2 uses the same limit."""


def check_recogniser(config: AsrConfig) -> None:
    """Check the settings of Whisper; other engines check theirs when they are loaded. Raises
    ConfigError for a language that the model does not know, EngineError for a device that is
    missing, and the errors of `find`."""
    if config.engine != "whisper":
        return
    if config.device == "cuda":
        import ctranslate2

        there = {"cuda": ctranslate2.get_cuda_device_count() > 0}
        chosen_device("asr.device", "cuda", (), there, "CTranslate2")
    starter = config.model == "starter"
    folder = bundled("models/starter/asr") if starter else find(config.model, "asr")
    tokens = _tokens(folder)
    if config.language == AUTO or not tokens:
        return
    many = len(tokens) >= MULTILINGUAL
    if config.language != "en" if not many else f"<|{config.language}|>" not in tokens:
        raise unknown_language(config)


def unknown_language(config: AsrConfig) -> ConfigError:
    """Return the error for a language that the model does not know."""
    return ConfigError(
        f"the model {config.model} does not know the language '{config.language}'",
        "give a two-letter code such as en, and a model of many languages such as base",
    )


def _tokens(folder: Path) -> frozenset[str]:
    """Return the tokens of the model's vocabulary, or an empty set if its file cannot be read."""
    try:
        if (listed := folder / "vocabulary.json").exists():
            return frozenset(parsed(listed.read_bytes()))
        text = (folder / "vocabulary.txt").read_text(encoding="utf-8")
    except (OSError, ValueError, TypeError):  # loading the model reports what is wrong
        return frozenset()
    return frozenset(text.removesuffix("\n").split("\n"))
