"""What a client is told and sent of responses, from their first token to what was heard of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Protocol

from voiceloop.errors import ProtocolError
from voiceloop.server.audio import ResponseEncoder, SocketSpeaker
from voiceloop.types import Clause, Pcm, TokenBurst, ToolCall, TurnTrace
from voiceloop.wire.client_events import ItemTruncate
from voiceloop.wire.extensions import OutputClause, Played
from voiceloop.wire.ids import NewId
from voiceloop.wire.ledger import PER_MS, Ledger
from voiceloop.wire.response_events import StatusDetails, Usage
from voiceloop.wire.responses import (
    CLIENT_CANCELLED,
    CUT_OFF,
    NOTHING_SAID,
    TOO_LONG,
    TURN_DETECTED,
    Response,
    failed,
)
from voiceloop.wire.server_events import ServerEvent
from voiceloop.wire.settings import ResponseSettings

REMEMBERED = 4
"""Responses that are over and can still be truncated to the word."""

_WORD = re.compile(r"\S+\s*")


class Out(Protocol):
    """Where events for the client go."""

    def put(self, event: ServerEvent) -> None:
        """Tell the client, after all that it was told before."""
        ...

    def flush(self, item_id: str) -> int:
        """Audio of an item that the client has not been sent yet it shall not be sent.

        Returns how many samples at 24 kHz that is.
        """
        ...

    def refuse(self, error: ProtocolError, event_id: str | None) -> None:
        """Tell the client what is wrong with its event of that id."""
        ...


class ClauseStarts:
    """The clauses of one response, with the sample at which each begins."""

    def __init__(self) -> None:
        self._clauses: list[tuple[int, Clause]] = []

    def add(self, start: int, clause: Clause) -> None:
        """A clause begins to sound at sample `start`."""
        self._clauses.append((start, clause))

    def until(self, samples: int, end: int) -> str:
        """The text heard in the first `samples` of `end` samples.

        For clients that say where they stopped. Within a clause the synthesizer's own word times
        are not known here: a word is taken to sound in proportion to its letters, and counts when
        it has sounded to its end.
        """
        stops = [start for start, _ in self._clauses[1:]] + [end]
        heard: list[str] = []
        for (start, clause), stop in zip(self._clauses, stops, strict=True):
            share = min(1.0, max(0.0, (samples - start) / max(1, stop - start)))
            ends = _ends_of_words(clause.text)
            heard.append(_words(clause.text, sum(at <= share * len(clause.text) for at in ends)))
        return "".join(heard).strip()

    def first(self, words: int) -> str:
        """The text of the first so many words of the audio.

        A clause may be spoken in other words than it is written in, such as its numbers. Then as
        large a part of these counts.
        """
        heard: list[str] = []
        for _, clause in self._clauses:
            spoken = max(1, len(clause.spans))
            written = len(_ends_of_words(clause.text))
            heard.append(_words(clause.text, written * min(words, spoken) // spoken))
            words = max(0, words - spoken)
        return "".join(heard).strip()


def _ends_of_words(text: str) -> list[int]:
    return [word.end() for word in _WORD.finditer(text)]


def _words(text: str, count: int) -> str:
    """The first so many words of `text`, with the blanks around them."""
    ends = _ends_of_words(text)
    return text if count == len(ends) else text[: [0, *ends][count]]


@dataclass(slots=True)
class SpokenResponse:
    """A response that is being given, and what it is made of."""

    response: Response
    encoder: ResponseEncoder
    said: ClauseStarts = field(default_factory=ClauseStarts)
    ending: StatusDetails | None = None
    """How it will have ended, where that is known before it has."""
    tokens: int = 0
    stopped: ItemTruncate | None = None
    """Where the client has stopped it, in its own words."""


class Speaking:
    """The responses of one connection, by the turns that they answer."""

    def __init__(self, new_id: NewId, ledger: Ledger, conversation_id: str, out: Out) -> None:
        self.speaker = SocketSpeaker(self._sound)
        self._new_id = new_id
        self._ledger = ledger
        self._conversation_id = conversation_id
        self._out = out
        self._open: dict[int, SpokenResponse] = {}
        self._past: list[SpokenResponse] = []
        self._sounding: SpokenResponse | None = None

    @property
    def responding(self) -> bool:
        """A response is in progress."""
        return bool(self._open)

    @property
    def ending(self) -> bool:
        """Responses are in progress, of which the client wants no more."""
        return bool(self._open) and all(spoken.ending for spoken in self._open.values())

    def turn_of(self, id: str) -> int | None:
        """The turn to which the response with that id, or with a message of that id, is given."""
        for turn, spoken in self._open.items():
            if id in (spoken.response.id, spoken.response.message_id):
                return turn
        return None

    def begun(self, turn: int) -> bool:
        """The response to `turn` is in progress."""
        return turn in self._open

    def begin(self, turn: int, settings: ResponseSettings) -> None:
        """Give a response."""
        cid = self._conversation_id
        response = Response(self._new_id, settings, self._ledger, conversation_id=cid)
        self._open[turn] = SpokenResponse(response, ResponseEncoder(settings.audio.output.format))
        self._tell(*response.start())

    def burst(self, event: TokenBurst) -> None:
        """More text."""
        spoken = self._open[event.turn]
        self._tell(*spoken.response.text(event.text))
        spoken.tokens += len(event.ids)

    def call(self, call: ToolCall) -> str:
        """A function of the client's is called; returns the id that the client was told."""
        call_id = self._new_id("call")
        arguments = json.dumps(dict(call.arguments))
        response = self._open[call.turn].response
        self._tell(*response.call(call_id, call.name, arguments, last=True))
        return call_id

    def clause(self, event: Clause, *, told: bool) -> None:
        """The clause begins to sound with the next audio, and the client is `told` so."""
        self._sounding = spoken = self._open[event.turn]
        if not event.index:
            self.speaker.begin()
        start, item_id = spoken.response.samples, spoken.response.message_id
        spoken.said.add(start, event)
        if told and item_id:
            self._out.put(OutputClause(item_id, start / PER_MS, event.text))

    def played(self, event: Played) -> None:
        """The client says how far it has played."""
        spoken = self._sounding
        if spoken and spoken.response.message_id == event.item_id:
            sent = spoken.response.samples
            self.speaker.played(round(min(event.audio_ms * PER_MS, sent)), sent)

    def cancel(self, turn: int, stopped: ItemTruncate | None = None) -> None:
        """The client wants no more of it, and may say where it `stopped` playing."""
        if turn in self._open:
            self._cut(turn, CLIENT_CANCELLED)
            self._open[turn].stopped = stopped or self._open[turn].stopped

    def interrupt(self, turn: int) -> None:
        """The user has taken the floor."""
        if turn in self._open:
            self._cut(turn, TURN_DETECTED)

    def item_of(self, turn: int) -> str | None:
        """The message of the response to `turn` while it is given."""
        spoken = self._open.get(turn)
        return spoken.response.message_id if spoken else None

    def heard(self, item_id: str, samples: int) -> str:
        """The text of a message that lies within its first `samples`."""
        for spoken in (*self._past, *self._open.values()):
            if spoken.response.message_id == item_id:
                return spoken.said.until(samples, spoken.response.samples)
        return ""

    def end(self, trace: TurnTrace, failure: str) -> SpokenResponse | None:
        """The turn is over, with a `failure` or without; returns its response if there was one."""
        spoken = self._open.pop(trace.turn, None)
        if spoken is None:
            return None
        self._past = [*self._past, spoken][-REMEMBERED:]
        if self._sounding is spoken:
            self._sounding = None
        ending = spoken.ending
        if trace.outcome == "failed":
            ending = failed(failure)
        elif trace.outcome == "abandoned":
            ending = ending or failed("there was nothing to answer")
        elif trace.outcome == "interrupted":
            ending = ending or TURN_DETECTED
        elif trace.outcome == "silent":
            ending = ending or NOTHING_SAID
        elif trace.counters.get("too_long"):
            ending = ending or TOO_LONG
        heard = None if trace.outcome in ("done", "silent") else trace.heard
        self._tell(*spoken.response.end(ending, usage=Usage.of(0, 0, spoken.tokens), heard=heard))
        return spoken

    def leave(self, words: int) -> None:
        """The client has gone: what was being said ends where it was heard, after so many words of
        its audio."""
        for spoken in self._open.values():
            heard = spoken.said.first(words) if spoken is self._sounding else ""
            usage = Usage.of(0, 0, spoken.tokens)
            self._tell(*spoken.response.end(spoken.ending or CUT_OFF, usage=usage, heard=heard))
        self._open.clear()

    def _cut(self, turn: int, ending: StatusDetails) -> None:
        spoken = self._open[turn]
        spoken.ending = spoken.ending or ending
        if item_id := spoken.response.message_id:
            spoken.response.take_back(self._out.flush(item_id))

    def _sound(self, pcm: Pcm) -> None:
        # A reply may have been begun before the client asked for text alone.
        spoken = self._sounding
        if spoken is not None and spoken.response.spoken:
            self._tell(*spoken.response.audio(spoken.encoder.feed(pcm)))

    def _tell(self, *events: ServerEvent) -> None:
        for event in events:
            self._out.put(event)
