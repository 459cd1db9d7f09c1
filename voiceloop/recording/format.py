"""The format of a recording: names of its files, and its values as JSON.

A value of a union is an object with one key, the name of its class. Readers trust nothing: each
value is checked against its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args
from urllib.parse import urlsplit, urlunsplit

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from voiceloop.dialogue.conversationstate import Abilities, ConversationState
from voiceloop.dialogue.inputs import Input
from voiceloop.dialogue.state import DialogueSettings, Options
from voiceloop.languages import language
from voiceloop.settings.config import Config, McpConfig, ServerConfig, TurnConfig
from voiceloop.types import Calibration, Event

FORMAT = 1
"""Number of the format. A recording with another number cannot be read."""
ABOUT, SETTINGS = "about.json", "settings.toml"
REPORTS, EVENTS = "reports.jsonl", "events.jsonl"
MICROPHONE, SPEAKER = "microphone.wav", "speaker.wav"


class RecordingOrigin(Struct, frozen=True):
    """How a recording was made."""

    format: int
    voiceloop: str
    """Version of voiceloop."""
    python: str
    platform: str
    began: str
    """Date and time, by ISO 8601."""
    engines: str
    full_duplex: bool
    """Whether the user was heard during replies."""


class CoreStart(Struct, frozen=True):
    """All that the core knew at the beginning of a conversation: the first line of the reports."""

    format: int
    policy: TurnConfig
    language: str
    """Code of the user's language."""
    answers: bool
    interruptible: bool
    thinks: bool
    reply: Options
    abilities: Abilities
    calibrations: Mapping[str, Calibration | None]


class CoreCall(Struct, frozen=True):
    """A call of the core: each line of the reports after the first."""

    at: float
    """Seconds of the event loop's clock."""
    report: Mapping[str, Any]
    actions: Sequence[Mapping[str, Mapping[str, Any]]]
    """The actions that the core returned, or `Raised` alone."""


class ShownEvent(Struct, frozen=True):
    """An event that was shown to the user or client: a line of the events."""

    at: float
    """Seconds of the event loop's clock."""
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception that a call of the core raised. It is recorded in place of actions."""

    error: str


_REPORTS = {kind.__name__: kind for kind in get_args(Input)}
_EVENTS = {kind.__name__: kind for kind in get_args(Event)}


def start_of(state: ConversationState) -> CoreStart:
    """Return the record of `state`, which must not have received any report yet."""
    own = state.settings
    settings = own.answers, own.interruptible, own.thinks, own.reply
    known = state.abilities, state.calibrations
    return CoreStart(FORMAT, own.policy, own.language.code, *settings, *known)


def state_of(start: CoreStart) -> ConversationState:
    """Return a new state with the values in `start`."""
    own = start.answers, start.interruptible, start.thinks, start.reply
    settings = DialogueSettings(start.policy, language(start.language), *own)
    return ConversationState(settings, start.abilities, start.calibrations)


def tagged(value: object) -> dict[str, Any]:
    """Return a dictionary with one item: `value` under the name of its class."""
    return {type(value).__name__: value}


def report_in(record: Mapping[str, Any]) -> Input:
    """Return the report in a record. Raises msgspec.ValidationError if there is none."""
    return _untagged(_REPORTS, record)


def event_in(record: Mapping[str, Any]) -> Event:
    """Return the event in a record. Raises msgspec.ValidationError if there is none."""
    return _untagged(_EVENTS, record)


def _untagged(kinds: Mapping[str, Any], record: Mapping[str, Any]) -> Any:
    if len(record) != 1 or (name := next(iter(record))) not in kinds:
        raise msgspec.ValidationError("Expected an object with one key, the name of a known class")
    return msgspec.convert(record[name], kinds[name])


def encoded(value: object) -> bytes:
    """Return `value` as JSON on one line. Equal values give equal lines."""
    return msgspec.json.encode(value, enc_hook=_of_numpy, order="deterministic")


def plain(value: object) -> Any:
    """Return `value` in plain JSON types, as it would be read from a recording."""
    return msgspec.json.decode(encoded(value))


def _of_numpy(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError


def veiled(settings: Config) -> Config:
    """Return `settings` without secrets.

    In `llm.base_url`, the user, the password and everything after the path are left out. The store
    of the server's sessions is left out. So are the settings of MCP servers and the options of
    engines, because they may contain anything.
    """
    return replace(
        settings,
        asr=replace(settings.asr, options={}),
        llm=replace(settings.llm, options={}, base_url=_without_user(settings.llm.base_url)),
        tts=replace(settings.tts, options={}),
        server=replace(settings.server, store=ServerConfig().store),
        mcp=McpConfig(),
    )


def _without_user(url: str) -> str:
    """Return `url` without its user, password, query and fragment. Return an empty text if `url` is
    not valid."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
