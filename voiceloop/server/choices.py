"""What a client is told of the models, and what it may choose of theirs: a voice, a language."""

from __future__ import annotations

from voiceloop.config import Config
from voiceloop.engines import Asr, Tts
from voiceloop.errors import ConfigError, ProtocolError
from voiceloop.schema import nearest
from voiceloop.status import engine_names, examples, notes
from voiceloop.wire.settings import STOCK_VOICES, Extensions, SessionSettings


def about(config: Config, tts: Tts) -> Extensions:
    """The models' names, what to ask them, and what to expect of them, as a session begins."""
    return Extensions(
        voices=tuple(tts.voices()),
        models=tuple(engine_names(config).split(", ")),
        examples=examples(config),
        notes=notes(config),
    )


def voice(tts: Tts, asked: str, param: str) -> str:
    """The voice that `asked` for means; one of the protocol's own, where there is none of that
    name, is the server's.

    Raises ProtocolError, which names `param`, for a voice that there is not.
    """
    if asked in STOCK_VOICES and asked not in tts.voices():
        asked = tts.voice
    try:
        tts.check_voice(asked)
    except ConfigError as error:
        raise ProtocolError(error.message, error.hint, param=param) from error
    return asked


def language(asr: Asr, settings: SessionSettings) -> str | None:
    """The language that the user speaks; None for the recogniser's own.

    Raises ProtocolError for one that the recogniser does not know.
    """
    transcription = settings.audio.input.transcription
    asked = transcription.language if transcription else None
    if asked is None or asked in asr.languages:
        return asked
    near = nearest(asked, asr.languages)
    raise ProtocolError(
        f"{asr.name} does not know the language '{asked}'",
        f"did you mean '{near}'?" if near else f"it knows {', '.join(sorted(asr.languages))}",
        param="session.audio.input.transcription.language",
    )
