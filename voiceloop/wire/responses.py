"""The events of one response, in the order that the protocol documents.

Callers decide what a response says and when.

    response.created
      response.output_item.added, conversation.item.added
        response.content_part.added
          response.output_audio_transcript.delta and response.output_audio.delta, in any order
        response.output_audio.done, response.output_audio_transcript.done
        response.content_part.done
      conversation.item.done, response.output_item.done
    response.done

In a response of text alone, `response.output_text` takes the place of audio and transcript. A
function call has arguments and no parts. A response has at most one message, and any number of
calls. A complete call is sent at once, even while the message still sounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from voiceloop.wire import server_events
from voiceloop.wire.items import (
    RATE,
    FunctionCall,
    Item,
    Message,
    NewId,
    OutputAudioPart,
    OutputText,
    Status,
)
from voiceloop.wire.ledger import Ledger
from voiceloop.wire.server_events import ServerEvent, StatusDetails, StatusError, Usage
from voiceloop.wire.settings import ResponseSettings, length

TURN_DETECTED = StatusDetails("cancelled", "turn_detected")
CLIENT_CANCELLED = StatusDetails("cancelled", "client_cancelled")
CUT_OFF = StatusDetails("cancelled")
"""The end of a response whose connection was lost midway."""
CONTENT_FILTERED = StatusDetails("incomplete", "content_filter")
TOO_LONG = StatusDetails("incomplete", "max_output_tokens")
NOTHING_SAID = StatusDetails(
    "incomplete",
    error=StatusError("server_error", "nothing_said", "the model wrote nothing that can be said"),
)


def failed(message: str, code: str | None = None) -> StatusDetails:
    """Return the end of a response that failed on the server."""
    return StatusDetails("failed", error=StatusError("server_error", code, message))


@dataclass(slots=True)
class _Open:
    """An item that has begun and has not ended: the message of the response, or a call."""

    id: str
    index: int
    call: tuple[str, str] | None = None
    """Id of the call and name of the function; None for the message."""
    text: list[str] = field(default_factory=list[str])
    """Pieces of the message's text or of the call's arguments."""
    samples: int = 0
    """Length of the message's audio, in samples at 24 kHz."""


class Response:
    """One response of the model. Its methods return the events for the client. Text, audio and
    calls that are added after its end are dropped, because a stage may still deliver some."""

    def __init__(
        self,
        new_id: NewId,
        settings: ResponseSettings,
        ledger: Ledger,
        *,
        conversation_id: str,
    ) -> None:
        """Add the items of the response to `ledger`, unless the settings keep them out of it."""
        self.id = new_id("resp")
        self.settings = settings
        self._new_id = new_id
        self._ledger = ledger if settings.conversation == "auto" else None
        self._conversation_id = None if self._ledger is None else conversation_id
        self.spoken = settings.output_modalities == ("audio",)
        """Whether the response is audio with a transcript; otherwise it is text alone."""
        self._started = self._over = False
        self._message: _Open | None = None
        self._calls: dict[str, _Open] = {}
        """Calls whose arguments are not complete yet, by call id."""
        self._output: dict[int, Item] = {}
        """Items that have ended, by index."""
        self._opened = 0
        """Number of items that have begun."""

    @property
    def in_conversation(self) -> bool:
        """Whether the items of the response become part of the conversation."""
        return self._ledger is not None

    @property
    def over(self) -> bool:
        """Whether `response.done` has been returned."""
        return self._over

    @property
    def message_id(self) -> str | None:
        """Id of the response's message; None before the message begins."""
        return self._message.id if self._message else None

    @property
    def samples(self) -> int:
        """Length of the audio so far, in samples at 24 kHz, whatever its format is."""
        return self._message.samples if self._message else 0

    def start(self) -> list[ServerEvent]:
        """Begin the response, unless it has begun. The other methods call this themselves."""
        if self._started:
            return []
        self._started = True
        return [server_events.ResponseCreated(self._object("in_progress"))]

    def text(self, delta: str) -> list[ServerEvent]:
        """Append text to the message. In a spoken response it is the text of the audio that
        follows."""
        if self._over or not delta:
            return []
        events, message = self._opened_message()
        message.text.append(delta)
        kind = server_events.OutputTranscriptDelta if self.spoken else server_events.OutputTextDelta
        return [*events, kind(self.id, message.id, message.index, 0, delta)]

    def audio(self, sound: bytes) -> list[ServerEvent]:
        """Append audio to the message, in the format of the settings.

        Raises ValueError if `sound` is not whole samples, or if the response is not spoken.
        """
        format = self.settings.audio.output.format
        if len(sound) % format.sample_bytes or not self.spoken:
            raise ValueError("a spoken response takes whole samples, a written one none")
        if self._over or not sound:
            return []
        events, message = self._opened_message()
        start, lasts = message.samples * format.rate // RATE, length(sound, format)
        message.samples += lasts
        of_part = (self.id, message.id, message.index, 0)
        return [*events, server_events.OutputAudioDelta(*of_part, sound, start, lasts)]

    def take_back(self, samples: int) -> None:
        """Subtract `samples`, counted at 24 kHz, from the length of the audio, because they will
        not be sent."""
        if self._message:
            self._message.samples -= samples

    def call(self, call_id: str, name: str, delta: str, *, last: bool) -> list[ServerEvent]:
        """Append `delta` to the arguments of the call `call_id`, and begin the call if it is new.
        End the call if `last` is true."""
        if self._over:
            return []
        events = self.start()
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = self._next((call_id, name))
            events += self._added(call)
        if delta:
            call.text.append(delta)
            events.append(
                server_events.ArgumentsDelta(self.id, call.id, call.index, call_id, delta)
            )
        if last:
            del self._calls[call_id]
            events += self._closed(call, "completed")
        return events

    def end(
        self,
        details: StatusDetails | None = None,
        *,
        usage: Usage | None = None,
        heard: str | None = None,
    ) -> list[ServerEvent]:
        """End the response. Its status is `completed`, or that of `details`.

        `heard` is the text of the part of a spoken message that was heard; None if all of it was
        heard.
        """
        if self._over:
            return []
        events = self.start()
        if self._message and self.spoken and heard is not None:
            self._message.text = [heard]
        items = [*([self._message] if self._message else []), *self._calls.values()]
        for item in sorted(items, key=lambda item: item.index):
            events += self._closed(item, "incomplete" if details else "completed")
        self._over = True
        status = details.type if details else "completed"
        return [*events, server_events.ResponseDone(self._object(status, details, usage))]

    def _object(
        self,
        status: Literal["in_progress", "completed", "cancelled", "failed", "incomplete"],
        details: StatusDetails | None = None,
        usage: Usage | None = None,
    ) -> server_events.ResponseObject:
        return server_events.ResponseObject(
            self.id,
            status,
            details,
            output=tuple(self._output[index] for index in sorted(self._output)),
            conversation_id=self._conversation_id,
            output_modalities=self.settings.output_modalities,
            audio=self.settings.audio,
            max_output_tokens=self.settings.max_output_tokens,
            usage=usage,
            metadata=self.settings.metadata,
        )

    def _next(self, call: tuple[str, str] | None = None) -> _Open:
        """Return a new item with the next index."""
        self._opened += 1
        return _Open(self._new_id("item"), self._opened - 1, call)

    def _opened_message(self) -> tuple[list[ServerEvent], _Open]:
        """Return the message, with the events that begin it if it is new."""
        events = self.start()
        message = self._message
        if message is None:
            message = self._message = self._next()
            part = server_events.AudioPart("") if self.spoken else server_events.TextPart("")
            added = server_events.ContentPartAdded(self.id, message.id, message.index, 0, part)
            events += [*self._added(message), added]
        return events, message

    def _added(self, item: _Open) -> list[ServerEvent]:
        """Add an item to the conversation. Return the events that begin it."""
        if item.call:
            begun = FunctionCall(item.call[1], "", item.call[0], item.id, "in_progress")
        else:
            begun = Message("assistant", (), item.id, "in_progress")
        events: list[ServerEvent] = [server_events.OutputItemAdded(self.id, item.index, begun)]
        return events if self._ledger is None else [*events, *self._ledger.begin(begun)]

    def _closed(self, item: _Open, status: Status) -> list[ServerEvent]:
        """Put the final form of an item into the conversation. Return the events that end it."""
        text = "".join(item.text)
        of_item = (self.id, item.id, item.index)
        events: list[ServerEvent]
        if item.call:
            call_id, name = item.call
            whole = FunctionCall(name, text, call_id, item.id, status)
            events = [server_events.ArgumentsDone(*of_item, call_id, name, text)]
        elif self.spoken:
            whole = Message("assistant", (OutputAudioPart(text),), item.id, status)
            events = [
                server_events.OutputAudioDone(*of_item, 0),
                server_events.OutputTranscriptDone(*of_item, 0, text),
                server_events.ContentPartDone(*of_item, 0, server_events.AudioPart(text)),
            ]
        else:
            whole = Message("assistant", (OutputText(text),), item.id, status)
            events = [
                server_events.OutputTextDone(*of_item, 0, text),
                server_events.ContentPartDone(*of_item, 0, server_events.TextPart(text)),
            ]
        self._output[item.index] = whole
        if self._ledger is not None:
            events += self._ledger.finish(whole, item.samples)
        return [*events, server_events.OutputItemDone(self.id, item.index, whole)]
