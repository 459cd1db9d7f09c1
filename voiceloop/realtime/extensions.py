"""What voiceloop adds to the protocol, in both directions; see `settings.Extensions`.

A client that does not ask for any of it gets none of these events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from voiceloop.config import Range
from voiceloop.realtime.event import Event
from voiceloop.realtime.items import EventId, ItemId
from voiceloop.realtime.schema import Most


@dataclass(frozen=True, slots=True)
class Played:
    """How much of an item's audio has been played; send it every 100 ms and when paused."""

    tags: ClassVar = {"type": "voiceloop.played"}

    item_id: ItemId
    """The message of the model that is being played."""
    audio_ms: Annotated[float, Range(0)]
    """Exact milliseconds of its audio that have left the speaker, since its first sample."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Take up a session whose connection was lost. Answered by `voiceloop.session.resumed`."""

    tags: ClassVar = {"type": "voiceloop.resume"}

    token: Annotated[str, Most(256)]
    """What `voiceloop.session.token` told last."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class TentativeTranscript(Event):
    """The user's turn so far, words that may change included; it replaces the former."""

    tags: ClassVar = {"type": "voiceloop.transcript"}

    item_id: str
    """The message that the turn becomes."""
    committed: str
    """Words that stay."""
    tentative: str
    """Words after them that may still change."""


@dataclass(frozen=True, slots=True)
class TraceTold(Event):
    """The record of a turn, when it is over."""

    tags: ClassVar = {"type": "voiceloop.trace"}

    response_id: str | None
    """The response; null where there was none."""
    item_id: str | None
    """The user's message; null where there was none."""
    trace: Mapping[str, object]
    """`voice_to_voice_ms`, its `parts`, and what else docs/latency.md explains; `speech_end_ms` is
    where in the input audio the user's voice ended, so that a client can tell by its own clock how
    long that was before the first sound."""


@dataclass(frozen=True, slots=True)
class OutputPaused(Event):
    """Pause the audio of an item at once, and keep the rest: the user may be interrupting."""

    tags: ClassVar = {"type": "voiceloop.output.paused"}

    item_id: str
    """The message that is being played."""


@dataclass(frozen=True, slots=True)
class OutputResumed(Event):
    """It was no interruption: play on from the sample after the last that was played."""

    tags: ClassVar = {"type": "voiceloop.output.resumed"}

    item_id: str
    """The message that was paused."""


@dataclass(frozen=True, slots=True)
class SessionToken(Event):
    """With this the session can be taken up again after its connection is lost."""

    tags: ClassVar = {"type": "voiceloop.session.token"}

    token: str
    """For `voiceloop.resume`; a newer one makes it invalid."""
    expires_in_s: float
    """How long the session is kept without a connection, in seconds."""


@dataclass(frozen=True, slots=True)
class SessionResumed(Event):
    """The session goes on; `conversation.item.added` and `.done` tell each of its items again."""

    tags: ClassVar = {"type": "voiceloop.session.resumed"}
