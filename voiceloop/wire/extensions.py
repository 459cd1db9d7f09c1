"""What voiceloop adds to the protocol, in both directions; see `settings.Extensions`.

A client that does not ask for any of it gets none of these events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from voiceloop.wire.items import ClientEventBase, ItemId
from voiceloop.wire.server_events import ServerEvent


class Played(ClientEventBase, frozen=True, tag="voiceloop.played"):
    """How much of an item's audio has been played; send it every 100 ms and when paused."""

    item_id: ItemId
    """The message of the model that is being played."""
    audio_ms: Annotated[float, Meta(ge=0)]
    """Exact milliseconds of its audio that have left the speaker, since its first sample."""


class Resume(ClientEventBase, frozen=True, tag="voiceloop.resume"):
    """Take up a session whose connection was lost. Answered by `voiceloop.session.resumed`."""

    token: Annotated[str, Meta(max_length=256)]
    """What `voiceloop.session.token` told last."""


class UseLlmServer(ClientEventBase, frozen=True, tag="voiceloop.llm_server.use"):
    """Have a language-model server reply that `session.voiceloop.llm_servers` tells of.

    Answered by `voiceloop.llm_server.used` once it has replied, or by `error`: `not_permitted` for
    whoever is not told of any.
    """

    server: Annotated[str, Meta(max_length=64)]
    """Its id."""


class LlmServerUsed(ServerEvent, frozen=True, tag="voiceloop.llm_server.used"):
    """The language-model server replies from now on, in every session that begins or is taken up
    again. A client that wants that at once connects anew and sends `voiceloop.resume`."""

    name: str
    """What kind of server it is."""
    model: str
    """The model that replies."""
    kept: str | None
    """The file of settings that says so from the next start on; null where it could not be
    written."""


class TentativeTranscript(ServerEvent, frozen=True, tag="voiceloop.transcript"):
    """The user's turn so far, words that may change included; it replaces the former."""

    item_id: str
    """The message that the turn becomes."""
    committed: str
    """Words that stay."""
    tentative: str
    """Words after them that may still change."""


class TraceSent(ServerEvent, frozen=True, tag="voiceloop.trace"):
    """The record of a turn, when it is over."""

    response_id: str | None
    """The response; null where there was none."""
    item_id: str | None
    """The user's message; null where there was none."""
    trace: Mapping[str, object]
    """`voice_to_voice_ms`, its `parts`, and what else docs/latency.md explains; `speech_end_ms` is
    where in the input audio the user's voice ended, so that a client can tell by its own clock how
    long that was before the first sound."""


class OutputPaused(ServerEvent, frozen=True, tag="voiceloop.output.paused"):
    """Pause the audio of an item at once, and keep the rest: the user may be interrupting."""

    item_id: str
    """The message that is being played."""


class OutputResumed(ServerEvent, frozen=True, tag="voiceloop.output.resumed"):
    """It was no interruption: play on from the sample after the last that was played."""

    item_id: str
    """The message that was paused."""


class OutputClause(ServerEvent, frozen=True, tag="voiceloop.output.clause"):
    """A piece of a response begins in its audio. So a client whose connection ends in the middle
    can tell what was heard."""

    item_id: str
    """The message."""
    audio_ms: float
    """Where in its audio the piece begins, in exact milliseconds."""
    text: str
    """Its words; all pieces together are the message."""


class SessionToken(ServerEvent, frozen=True, tag="voiceloop.session.token"):
    """With this the session can be taken up again after its connection is lost."""

    token: str
    """For `voiceloop.resume`; a newer one makes it invalid."""
    expires_in_s: float
    """How long the session is kept without a connection, in seconds."""


class SessionResumed(ServerEvent, frozen=True, tag="voiceloop.session.resumed"):
    """The session goes on; `conversation.item.added` and `.done` tell each of its items again."""
