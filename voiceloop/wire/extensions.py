"""The events that voiceloop adds to the protocol, in both directions.

The server sends such an event only to a client that turned it on in `settings.Extensions`, or as
the answer to an event of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from voiceloop.wire.items import ClientEventBase, ItemId
from voiceloop.wire.server_events import ServerEvent


class Played(ClientEventBase, frozen=True, tag="voiceloop.played"):
    """Report how much of an item's audio has been played. Send it every 100 ms during playback and
    whenever playback pauses."""

    item_id: ItemId
    """Id of the model's message that is being played."""
    audio_ms: Annotated[float, Meta(ge=0)]
    """Length of the message's audio that has left the speaker, in milliseconds, with fractions."""


class Resume(ClientEventBase, frozen=True, tag="voiceloop.resume"):
    """Resume a session whose connection was lost. Answered by `voiceloop.session.resumed`."""

    token: Annotated[str, Meta(max_length=256)]
    """The token of the newest `voiceloop.session.token`."""


class TokenReceived(ClientEventBase, frozen=True, tag="voiceloop.session.token.received"):
    """Report that the `voiceloop.session.token` of this connection has arrived. From then on the
    token before it is spent: a `voiceloop.resume` with a spent token ends the session."""


class UseLlmServer(ClientEventBase, frozen=True, tag="voiceloop.llm_server.use"):
    """Let one of the servers in `session.voiceloop.llm_servers` generate the replies, or the
    language model that voiceloop itself runs.

    Answered by `voiceloop.llm_server.used` once that model has replied or is loaded, or by `error`.
    The error has the code `not_permitted` for a client that is offered no servers.
    """

    server: Annotated[str, Meta(max_length=64)]
    """Id of the server; `none` for voiceloop's own language model."""
    model: Annotated[str, Meta(max_length=256)] = ""
    """Name of one of the server's models; empty for the first."""


class OpenConversation(ClientEventBase, frozen=True, tag="voiceloop.conversation.open"):
    """Go on with a conversation that is kept on the server's machine, or begin one. Send this as
    the first event of a connection.

    Answered by another `session.created`, in which `voiceloop.conversation` is the name, and by
    `conversation.item.added` and `.done` for each item of the conversation's latest turns. If the
    answer is `error` instead, the session goes on, but it is not kept. The error has the code
    `not_permitted` for a client that is offered no conversations. If the conversation is open on
    another connection to this server, that connection is closed.
    """

    name: Annotated[str, Meta(max_length=256)]
    """Name of the conversation: at most 64 letters, digits, spaces or `- . _` and the like."""


class LlmServerUsed(ServerEvent, frozen=True, tag="voiceloop.llm_server.used"):
    """Another language model generates the replies in every session that begins or is resumed from
    now on. To use it at once, a client connects again and sends `voiceloop.resume`."""

    name: str
    """Name of its server for people, such as `Ollama`; empty for voiceloop's own language model."""
    model: str
    """Name of the model that generates the replies."""
    kept: str | None
    """The settings file that keeps this choice for the next start; null if it could not be
    written."""


class TentativeTranscript(ServerEvent, frozen=True, tag="voiceloop.transcript"):
    """The transcript of the user's turn so far. It replaces the turn's earlier transcripts."""

    item_id: str
    """Id of the message that the turn becomes."""
    committed: str
    """Words that will not change any more."""
    tentative: str
    """Words after `committed` that may still change."""


class TraceSent(ServerEvent, frozen=True, tag="voiceloop.trace"):
    """The record of a turn that is over."""

    response_id: str | None
    """Id of the response; null if there was none."""
    item_id: str | None
    """Id of the user's message; null if there was none."""
    trace: Mapping[str, object]
    """`voice_to_voice_ms`, its `parts`, and the other figures that docs/latency.md explains.
    `speech_end_ms` is the position in the input audio at which the user's voice ended. With it a
    client can measure the time to the first sound by its own clock."""


class OutputPaused(ServerEvent, frozen=True, tag="voiceloop.output.paused"):
    """The user may be interrupting: pause the audio of an item at once, and keep the rest of it."""

    item_id: str
    """Id of the message that is being played."""


class OutputResumed(ServerEvent, frozen=True, tag="voiceloop.output.resumed"):
    """The user did not interrupt: continue the audio after the last sample that was played."""

    item_id: str
    """Id of the message that was paused."""


class OutputClause(ServerEvent, frozen=True, tag="voiceloop.output.clause"):
    """The position of a clause in the audio of a response. If the connection is lost midway, a
    client can tell from these positions what was heard."""

    item_id: str
    """Id of the message."""
    audio_ms: float
    """Start of the clause in the message's audio, in milliseconds, with fractions."""
    text: str
    """Text of the clause. All clauses together are the text of the message."""


class SessionToken(ServerEvent, frozen=True, tag="voiceloop.session.token"):
    """A token with which the session can be resumed after its connection is lost."""

    token: str
    """The token for `voiceloop.resume`; a newer one makes it invalid."""
    expires_in_s: float
    """Seconds for which the session is kept after its connection is lost."""


class SessionResumed(ServerEvent, frozen=True, tag="voiceloop.session.resumed"):
    """The session continues. `conversation.item.added` and `.done` follow for each of its items."""
