"""What a client is told of the models: their names, what to ask them, and what to expect."""

from __future__ import annotations

from voiceloop.bundled import EXAMPLES, STARTER_ANSWERS, STARTER_EXAMPLES, STARTER_HEARS
from voiceloop.config import Config
from voiceloop.engines import Tts
from voiceloop.realtime.settings import Extensions
from voiceloop.status import engine_names


def notes(config: Config) -> list[str]:
    """What whoever talks to these models should know."""
    starter = config.llm.answers_little
    return [STARTER_HEARS] * config.asr.hears_no_people + [STARTER_ANSWERS] * starter


def about(config: Config, tts: Tts) -> Extensions:
    """The extensions as a session begins with them."""
    return Extensions(
        voices=tuple(tts.voices()),
        models=tuple(engine_names(config).split(", ")),
        examples=STARTER_EXAMPLES if config.llm.answers_little else EXAMPLES,
        notes=tuple(notes(config)),
    )
