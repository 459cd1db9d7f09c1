"""The events that a client can send. `parsing` makes them from messages.

Those whose types begin with `voiceloop` are voiceloop's own.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from msgspec import Meta

from voiceloop.settings.schema import Count, tag_of
from voiceloop.wire.items import AudioBytes, ClientEventBase, Item, ItemId
from voiceloop.wire.settings import ResponseChanges, SessionChanges


class SessionUpdate(ClientEventBase, frozen=True, tag="session.update"):
    """Change settings of the session. Absent settings keep their values. Answered by
    `session.updated`."""

    session: SessionChanges
    """The settings to change."""


class InputAudioAppend(ClientEventBase, frozen=True, tag="input_audio_buffer.append"):
    """Append audio of the user. A binary message does the same: its bytes are the samples.

    With turn detection, two seconds without audio in the middle of a turn count as two seconds of
    silence. So a turn ends, too, if the client sends nothing while its user is muted.
    """

    audio: AudioBytes
    """Whole samples, in the session's `audio.input.format`."""


class InputAudioCommit(ClientEventBase, frozen=True, tag="input_audio_buffer.commit"):
    """End the user's turn: the audio so far becomes a message. Answered by
    `input_audio_buffer.committed`, or by the error `input_audio_buffer_commit_empty` if there is
    less than 100 ms of audio, or, with turn detection, no speech since the last turn."""


class InputAudioClear(ClientEventBase, frozen=True, tag="input_audio_buffer.clear"):
    """Forget the audio that is not committed yet. Answered by `input_audio_buffer.cleared`."""


class ItemCreate(ClientEventBase, frozen=True, tag="conversation.item.create"):
    """Add an item. Answered by `conversation.item.added` and `conversation.item.done`."""

    item: Item
    """The item to add."""
    previous_item_id: ItemId | None = None
    """Id of the item after which the new one is inserted; `root` means the beginning, null the
    end."""


class ItemRetrieve(ClientEventBase, frozen=True, tag="conversation.item.retrieve"):
    """Request an item with its audio. Answered by `conversation.item.retrieved`."""

    item_id: ItemId
    """Id of the item."""


class ItemDelete(ClientEventBase, frozen=True, tag="conversation.item.delete"):
    """Remove an item from the conversation. Answered by `conversation.item.deleted`."""

    item_id: ItemId
    """Id of the item."""


class ItemTruncate(ClientEventBase, frozen=True, tag="conversation.item.truncate"):
    """Cut a message of the model off at the point up to which the user heard it.

    If the response of the message is still in progress, it is stopped. Answered by
    `conversation.item.truncated`. A point past the end of the audio counts as the end.
    """

    item_id: ItemId
    """Id of a message of the model."""
    content_index: Count
    """Index of the content part, which is 0."""
    audio_end_ms: Count
    """The point at which to cut, in milliseconds from the start of the part's audio."""


class ResponseCreate(ClientEventBase, frozen=True, tag="response.create"):
    """Request a response. Answered by `response.created` and the events after it.

    The response is in progress from then on. While it is, another response to the conversation is
    refused with `conversation_already_has_active_response`. Responses with `conversation: none` are
    not: they are created at once, each with its own input, and made beside each other and beside
    what is spoken. Only one with the server's own instructions and without functions waits until
    nothing else is in progress. After `response.cancel` the new response waits for the end of
    the cancelled one. If the last response called functions, first create an item with the output
    of each call: one response answers all of them.
    """

    response: ResponseChanges | None = None
    """Settings for this response. Absent settings have the session's values."""


class ResponseCancel(ClientEventBase, frozen=True, tag="response.cancel"):
    """Stop a response. Answered by `response.done`."""

    response_id: ItemId | None = None
    """Id of the response to stop; null means the one in progress."""


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


ClientEvent = (
    SessionUpdate
    | InputAudioAppend
    | InputAudioCommit
    | InputAudioClear
    | ItemCreate
    | ItemRetrieve
    | ItemDelete
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
    | Played
    | Resume
    | TokenReceived
    | UseLlmServer
    | OpenConversation
)
CLIENT_EVENTS: dict[str, Any] = {tag_of(kind): kind for kind in get_args(ClientEvent)}
"""The struct of each event that a client can send, by the event's type."""
