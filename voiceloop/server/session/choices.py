"""Matches a client's settings with the models: describes the models to the client, checks its
choice of voice, language and functions, and converts settings to what the models take."""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TypeVar

from msgspec.structs import replace

from voiceloop.assembly.choosing import notes
from voiceloop.dialogue.state import Options
from voiceloop.engines import Asr, Conversation, Engines, Tts
from voiceloop.errors import Code, ConfigError, ProtocolError
from voiceloop.languages import installed, missing
from voiceloop.languages.voices import described
from voiceloop.settings.config import Config, ServerConfig
from voiceloop.settings.schema import is_given, nearest
from voiceloop.status import engine_names, examples
from voiceloop.types import Tool
from voiceloop.wire.settings import (
    STOCK_VOICES,
    Extensions,
    NamedFunction,
    ResponseSettings,
    SessionChanges,
    SessionSettings,
    Voice,
    size,
)

logger = logging.getLogger(__name__)

OF_RESPONSES = (
    *("output_modalities", "instructions", "tools", "tool_choice", "max_output_tokens"),
    *("parallel_tool_calls", "reasoning"),
)
"""Names of the settings of a session that affect only its responses."""

S = TypeVar("S", SessionSettings, ResponseSettings)


def about(config: Config, engines: Engines, requested: Extensions) -> Extensions:
    """Return the extensions that a client has requested, completed by the server's voices,
    languages, models, example questions and notes."""
    tts = engines.tts
    return replace(
        requested,
        voices=tuple(_voice(name, tts) for name in tts.voices()),
        languages=tuple(sorted(engines.asr.languages)),
        models=tuple(engine_names(config).split(", ")),
        examples=examples(config),
        notes=notes(config),
    )


def _voice(name: str, tts: Tts) -> Voice:
    voice = described(name, tts.language(name))
    return Voice(voice.name, voice.label, voice.language, voice.language_name)


def check_size(
    settings: SessionSettings | ResponseSettings, limits: ServerConfig, param: str
) -> None:
    """Raise ProtocolError, which names `param`, if instructions, tools and input are too large."""
    most = limits.conversation_bytes
    if (taken := size(settings)) > most:
        raise ProtocolError(
            f"instructions, tools and input take {taken} bytes, and {most} are the most",
            "give fewer tools, fewer items, or fewer words",
            param=param,
        )


def not_transcribing(changes: SessionChanges) -> list[ProtocolError]:
    """Return an error for each change that has no meaning in a session without responses."""
    named = [name for name in OF_RESPONSES if is_given(getattr(changes, name))]
    if is_given(changes.audio) and is_given(changes.audio.output):
        named.append("audio.output")
    hint = "a session of type `transcription` gives no responses"
    code: Code = "unsupported_parameter"
    return [
        ProtocolError(f"session.{name} is not supported", hint, code=code, param=f"session.{name}")
        for name in named
    ]


def with_voice(settings: S, tts: Tts, param: str) -> S:
    """Return the settings with a voice that the synthesizer has. A voice of OpenAI's that the
    synthesizer lacks is replaced by the server's own voice.

    Raises ProtocolError for any other unknown voice. `param` is the name of the settings in the
    error.
    """
    requested = settings.audio.output.voice
    if requested in STOCK_VOICES and requested not in tts.voices():
        requested = tts.voice
    try:
        tts.check_voice(requested)
    except ConfigError as error:
        where = f"{param}.audio.output.voice"
        raise ProtocolError(error.message, error.hint, param=where) from error
    _warn_of_missing_pack(tts.language(requested))
    return with_output(settings, voice=requested)


def with_output(settings: S, **changed: str | float) -> S:
    """Return the settings with other values for what the user hears."""
    output = replace(settings.audio.output, **changed)
    return replace(settings, audio=replace(settings.audio, output=output))


def _warn_of_missing_pack(code: str) -> None:
    if text := missing(code, installed()):
        _warn(text)


@cache
def _warn(why: str) -> None:
    """Log a warning, once in this process, that a client has chosen a language without its pack."""
    logger.warning("a client's language is not known well", extra={"why": why})


def language(asr: Asr, requested: str | None) -> str | None:
    """Return the recogniser's code for a language that was requested with or without a region.
    Return None if none was requested.

    Raises ProtocolError for a language that the recogniser does not know.
    """
    _warn_of_missing_pack(requested or "")
    if requested is None or requested in asr.languages:
        return requested
    plain = re.split("[-_]", requested.lower(), maxsplit=1)[0]
    if plain in asr.languages:
        return plain
    near = nearest(requested, asr.languages)
    raise ProtocolError(
        f"{asr.name} does not know the language '{requested}'",
        f"did you mean '{near}'?" if near else f"it knows {', '.join(sorted(asr.languages))}",
        param="session.audio.input.transcription.language",
    )


def offered(settings: SessionSettings | ResponseSettings) -> tuple[Tool, ...]:
    """Return the functions that the model may call."""
    if settings.tool_choice == "none":
        return ()
    return tuple(Tool(tool.name, tool.description, tool.parameters) for tool in settings.tools)


def required(settings: SessionSettings | ResponseSettings) -> tuple[str, ...]:
    """Return the names of the functions of which a response must call one; empty if the response
    may speak instead."""
    match settings.tool_choice:
        case NamedFunction(name=name):
            return (name,)
        case "required":
            return tuple(tool.name for tool in settings.tools)
        case _:
            return ()


def check_choice(
    settings: SessionSettings | ResponseSettings, conversation: Conversation, param: str
) -> None:
    """Raise ProtocolError if a required function is not among the tools, or if the model cannot be
    made to call it. `param` is the name of the settings in the error."""
    if settings.tool_choice in ("auto", "none"):
        return
    named, names = f"{param}.tool_choice", required(settings)
    tools = [tool for tool in offered(settings) if tool.name in names]
    if len({tool.name for tool in tools}) < max(1, len(set(names))):
        raise ProtocolError(
            f"{named} asks for a function that is not among the tools",
            "name it in `tools`, in the same event or before",
            param=named,
        )
    if not conversation.calls(tools):
        raise ProtocolError(
            f"{named} cannot be had of this language model",
            "tell it in `instructions` what to call and when, with tool_choice `auto`",
            param=named,
        )


def options(
    settings: SessionSettings | ResponseSettings, *, skills: bool, own_tools: bool
) -> Options:
    """Return the options of a reply.

    With `skills`, the rules for timers, sums and so on may answer in place of the language model.
    With `own_tools`, the language model may call the server's own tools.
    """
    most = settings.max_output_tokens
    return Options(
        spoken=settings.output_modalities == ("audio",),
        voice=settings.audio.output.voice,
        most_tokens=None if most == "inf" else most,
        client_tools=frozenset(tool.name for tool in offered(settings)),
        skills=skills,
        own_tools=own_tools,
        parallel_calls=settings.parallel_tool_calls,
    )
