"""What a client is told of the models: their names, what to ask them, and what to expect."""

from __future__ import annotations

from voiceloop.config import Config
from voiceloop.engines import Tts
from voiceloop.realtime.settings import Extensions
from voiceloop.status import engine_names, examples, notes


def about(config: Config, tts: Tts) -> Extensions:
    """The extensions as a session begins with them."""
    return Extensions(
        voices=tuple(tts.voices()),
        models=tuple(engine_names(config).split(", ")),
        examples=examples(config),
        notes=notes(config),
    )
