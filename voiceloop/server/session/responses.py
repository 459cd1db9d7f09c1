"""The responses of one connection, as events for its client, from the first token to the end, and
those that are made beside the conversation."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import anyio

from voiceloop.audio.frames import Resampler
from voiceloop.engines import GUESS, Conversation
from voiceloop.errors import ProtocolError, VoiceloopError, first_cause
from voiceloop.languages import language
from voiceloop.server.session import choices
from voiceloop.server.session.audio import ResponseEncoder, SocketSpeaker
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.history import SILENCE, history, unanswered
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.types import FILTERED, Clause, Pcm, TokenBurst, ToolCall, TurnTrace
from voiceloop.wire.client_events import ItemTruncate, Played
from voiceloop.wire.items import RATE, FunctionCall, FunctionCallOutput, NewId
from voiceloop.wire.ledger import PER_MS, Ledger
from voiceloop.wire.responses import (
    CLIENT_CANCELLED,
    CONTENT_FILTERED,
    CUT_OFF,
    NOTHING_SAID,
    TOO_LONG,
    TURN_DETECTED,
    Response,
    failed,
)
from voiceloop.wire.server_events import OutputClause, ServerEvent, StatusDetails, Usage
from voiceloop.wire.settings import ResponseSettings

logger = logging.getLogger(__name__)

REMEMBERED = 4
"""Number of ended responses whose clauses are kept. If one of these is truncated, the words up to
that point are known."""

_WORD = re.compile(r"\S+\s*")


class Out(Protocol):
    """A channel that sends events to the client."""

    def put(self, event: ServerEvent) -> None:
        """Send `event` to the client, after all earlier events."""
        ...

    def flush(self, item_id: str) -> int:
        """Drop all audio of an item that is still queued. Return its length in samples at 24
        kHz."""
        ...

    def refuse(self, error: ProtocolError, event_id: str | None) -> None:
        """Send an error. `event_id` is the id of the client's event that caused the error; None if
        there is no such id."""
        ...


class ClauseStarts:
    """The clauses of one response, each with the sample at which it begins."""

    def __init__(self) -> None:
        self._clauses: list[tuple[int, Clause]] = []

    def add(self, start: int, clause: Clause) -> None:
        """Add a clause that begins to sound at sample `start`."""
        self._clauses.append((start, clause))

    def until(self, samples: int, end: int) -> str:
        """Return the text that is heard in the first `samples` of `end` samples.

        This is for clients that report where they stopped. The exact times of words are not known
        here, so the time of a word is estimated in proportion to its number of letters. A word
        counts once it has sounded to its end.
        """
        stops = [start for start, _ in self._clauses[1:]] + [end]
        heard: list[str] = []
        for (start, clause), stop in zip(self._clauses, stops, strict=True):
            share = min(1.0, max(0.0, (samples - start) / max(1, stop - start)))
            ends = _ends_of_words(clause.text)
            heard.append(_words(clause.text, sum(at <= share * len(clause.text) for at in ends)))
        return "".join(heard).strip()

    def first(self, words: int) -> str:
        """Return the text of the first `words` spoken words.

        A clause may have more spoken than written words, for example for a number. If only a part
        of its spoken words is among the first `words`, the same share of its written words is
        returned.
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
    """Return the first `count` words of `text`, with the spaces around them."""
    ends = _ends_of_words(text)
    return text if count == len(ends) else text[: [0, *ends][count]]


@dataclass(slots=True)
class SpokenResponse:
    """A response, its encoder, its clauses so far, and its end once that is known."""

    response: Response
    encoder: ResponseEncoder
    said: ClauseStarts = field(default_factory=ClauseStarts)
    ending: StatusDetails | None = None
    """How it will end; None if that is not known yet."""
    tokens: int = 0
    """Number of tokens that the language model wrote for it."""
    read: int = 0
    """Number of tokens that the language model read for it, if it is made beside others."""
    requested: bool = True
    """Whether the client has requested it; otherwise it answers a turn that the server found."""
    stopped: ItemTruncate | None = None
    """The truncation by the client that has stopped it; None if there was none."""


class Responses:
    """The responses of one connection. Callers name a response by the turn that it answers."""

    def __init__(self, new_id: NewId, ledger: Ledger, conversation_id: str, out: Out) -> None:
        self.speaker = SocketSpeaker(self._sound)
        self._new_id = new_id
        self._ledger = ledger
        self._conversation_id = conversation_id
        self._out = out
        self._open: dict[int, SpokenResponse] = {}
        """Responses in progress whose turn has begun, by turn."""
        self._announced: list[SpokenResponse] = []
        """Responses in progress whose turn has not begun, or that have no turn."""
        self._past: list[SpokenResponse] = []
        """The last `REMEMBERED` responses that have ended."""
        self._sounding: SpokenResponse | None = None
        """The response whose audio is written now; None if there is none."""

    @property
    def responding(self) -> bool:
        """Whether a response is in progress whose turn has begun."""
        return bool(self._open)

    @property
    def busy(self) -> bool:
        """Whether a response to the conversation is in progress, and has not been cut off."""
        return any(not one.ending and one.response.in_conversation for one in self._open.values())

    def turn_of(self, id: str) -> int | None:
        """Return the turn of the response in progress that has this id, or whose message has this
        id; None if there is none."""
        for turn, spoken in self._open.items():
            if id in (spoken.response.id, spoken.response.message_id):
                return turn
        return None

    def begun(self, turn: int) -> bool:
        """Return whether the response to `turn` is in progress."""
        return turn in self._open

    def announce(self, settings: ResponseSettings, *, requested: bool = True) -> SpokenResponse:
        """Tell the client of a new response, and return it. `begin` must follow, or `withdraw`.
        `requested` says whether the client has requested it."""
        cid = self._conversation_id
        response = Response(self._new_id, settings, self._ledger, conversation_id=cid)
        encoder = ResponseEncoder(settings.audio.output.format)
        spoken = SpokenResponse(response, encoder, requested=requested)
        self._announced.append(spoken)
        self._put(*response.start())
        return spoken

    def begin(self, turn: int, spoken: SpokenResponse) -> None:
        """Begin to answer `turn` with a response that was announced."""
        self._announced.remove(spoken)
        self._open[turn] = spoken

    def withdraw(self, response_id: str | None, ending: StatusDetails | None) -> bool:
        """End a response whose turn has not begun, or that has no turn. Return False if there is
        none with this id."""
        for spoken in self._announced:
            if spoken.response.id == response_id:
                self._announced.remove(spoken)
                usage = Usage.of(0, 0, spoken.tokens)
                self._put(*spoken.response.end(ending, usage=usage))
                return True
        return False

    def burst(self, event: TokenBurst) -> None:
        """Send more text of a response."""
        spoken = self._open[event.turn]
        self._put(*spoken.response.text(event.text))
        spoken.tokens += len(event.ids)

    def call(self, call: ToolCall) -> str:
        """Send a call of one of the client's functions. Return the id that the call gets."""
        call_id = self._new_id("call")
        arguments = json.dumps(dict(call.arguments))
        response = self._open[call.turn].response
        self._put(*response.call(call_id, call.name, arguments, last=True))
        return call_id

    def done(self, call: ToolCall) -> None:
        """Send what a rule did, as two items: the call and its result."""
        call_id, arguments = self._new_id("call"), json.dumps(dict(call.arguments))
        for item in (
            FunctionCall(call.name, arguments, call_id, self._new_id("item")),
            FunctionCallOutput(call_id, call.result, self._new_id("item")),
        ):
            self._put(*self._ledger.begin(item), *self._ledger.finish(item))

    def clause(self, event: Clause, *, report: bool) -> None:
        """Note that a clause begins with the next audio. Send an event about it if `report`."""
        self._sounding = spoken = self._open[event.turn]
        if not event.index:
            self.speaker.begin()
        start, item_id = spoken.response.samples, spoken.response.message_id
        spoken.said.add(start, event)
        if report and item_id:
            self._out.put(OutputClause(item_id, start / PER_MS, event.text))

    def played(self, event: Played) -> None:
        """Take the client's report of how far it has played."""
        spoken = self._sounding
        if spoken and spoken.response.message_id == event.item_id:
            sent = spoken.response.samples
            self.speaker.played(round(min(event.audio_ms * PER_MS, sent)), sent)

    def cancel(self, turn: int, stopped: ItemTruncate | None = None) -> None:
        """Cut off a response that the client stops. `stopped` is the client's truncation; None if
        the client cancelled the response without truncating it."""
        if turn in self._open:
            self._cut(turn, CLIENT_CANCELLED)
            self._open[turn].stopped = stopped or self._open[turn].stopped

    def interrupt(self, turn: int) -> None:
        """Cut off a response because the user has interrupted it."""
        if turn in self._open:
            self._cut(turn, TURN_DETECTED)

    def item_of(self, turn: int) -> str | None:
        """Return the id of the message in the response to `turn`. Return None if the response is
        not in progress, or has no message yet."""
        spoken = self._open.get(turn)
        return spoken.response.message_id if spoken else None

    def heard(self, item_id: str, samples: int) -> str:
        """Return the text of a message that is heard in its first `samples`; empty if the message
        is not remembered."""
        for spoken in (*self._past, *self._open.values()):
            if spoken.response.message_id == item_id:
                return spoken.said.until(samples, spoken.response.samples)
        return ""

    def end(self, trace: TurnTrace, failure: str) -> SpokenResponse | None:
        """End the response to a turn that is over, and return it; None if the turn had none. If the
        turn failed, `failure` says why."""
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
            unheard = failed("no words were understood", "nothing_heard")
            ending = ending or (unheard if spoken.requested else TURN_DETECTED)
        elif trace.outcome == "interrupted":
            ending = ending or TURN_DETECTED
        elif trace.counters.get(FILTERED):
            ending = ending or CONTENT_FILTERED
        elif trace.outcome == "silent":
            ending = ending or NOTHING_SAID
        elif trace.counters.get("too_long"):
            ending = ending or TOO_LONG
        heard = None if trace.outcome in ("done", "silent") else trace.heard
        self._put(*spoken.response.end(ending, usage=Usage.of(0, 0, spoken.tokens), heard=heard))
        return spoken

    def leave(self, words: int) -> None:
        """End all responses, since the client has gone. Keep the text of the first `words` spoken
        words of the response that sounds, and no text of the others."""
        for spoken in (*self._open.values(), *self._announced):
            heard = spoken.said.first(words) if spoken is self._sounding else ""
            usage = Usage.of(0, 0, spoken.tokens)
            self._put(*spoken.response.end(spoken.ending or CUT_OFF, usage=usage, heard=heard))
        self._open.clear()
        self._announced.clear()

    def _cut(self, turn: int, ending: StatusDetails) -> None:
        """Drop the queued audio of a response, and note that it will end with `ending`."""
        spoken = self._open[turn]
        spoken.ending = spoken.ending or ending
        if item_id := spoken.response.message_id:
            spoken.response.take_back(self._out.flush(item_id))

    def _sound(self, pcm: Pcm) -> None:
        """Send audio, or drop it if the response is text alone: the reply may have been spoken
        already when the client requested text."""
        spoken = self._sounding
        if spoken is not None and spoken.response.spoken:
            self._put(*spoken.response.audio(spoken.encoder.feed(pcm)))

    def _put(self, *events: ServerEvent) -> None:
        for event in events:
            self._out.put(event)


async def respond_aside(
    dialogue: ClientConversation, responses: Responses, out: Out, spoken: SpokenResponse
) -> None:
    """Make a response out of the conversation, which was announced, and end it. Stop early if it is
    cancelled. A failure ends only this response.

    It has a conversation of its own with the language model, and is sent as fast as it is made. So
    it neither stops nor delays what is spoken. Neither rules nor the server's own tools have a part
    in it.
    """
    try:
        await _make(dialogue, out, spoken)
    except Exception as error:
        cause = first_cause(error)
        known = isinstance(cause, VoiceloopError)
        logger.warning("a response failed: %s", cause, exc_info=None if known else error)
        spoken.ending = failed(cause.message if known else repr(cause))
    responses.withdraw(spoken.response.id, spoken.ending)


async def _make(dialogue: ClientConversation, out: Out, spoken: SpokenResponse) -> None:
    runner, settings = dialogue.engines.llm_runner, spoken.response.settings
    seen, items = dialogue.seen(settings), dialogue.read(settings)
    system, past = history(seen.instructions, items, ())
    conversation = dialogue.engines.llm.conversation(system=system)
    conversation.effort, conversation.parallel_calls = seen.effort, seen.parallel_calls
    tools = choices.offered(settings)
    try:
        begin = partial(conversation.rewrite, system, past, tools, seen.required)
        await runner.call(begin, priority=GUESS)
        text = unanswered(items) or SILENCE
        tts, voice = dialogue.engines.tts, settings.audio.output.voice
        cutter = ClauseCutter(1, language(tts.language(voice)))

        async def speak(clauses: Sequence[Clause]) -> None:
            if spoken.response.spoken:
                for clause in clauses:
                    await _speak(dialogue, out, spoken, clause)

        async def write(burst: TokenBurst) -> None:
            await speak(cutter.feed(burst))

        if await _answer(dialogue, out, spoken, conversation, text, write):
            await speak(cutter.flush())
    finally:
        with anyio.CancelScope(shield=True):
            spoken.read = conversation.standing.tokens_read
            await runner.call(conversation.close, priority=GUESS)


async def _answer(
    dialogue: ClientConversation,
    out: Out,
    spoken: SpokenResponse,
    conversation: Conversation,
    text: str,
    write: Callable[[TokenBurst], Awaitable[None]],
) -> bool:
    """Answer `text`: send the text and the calls, and give each burst to `write`. At the end, note
    how the response ends. Returns whether there was a burst."""
    response, most = spoken.response, spoken.response.settings.max_output_tokens
    said = written = False
    runner, steps = dialogue.engines.llm_runner, conversation.reply(text, 1)
    async with aclosing(runner.stream(steps, priority=GUESS)) as items:
        async for item in items:
            if response.over or spoken.ending:
                return written
            if isinstance(item, ToolCall) and not item.problem:
                call = dialogue.new_id("call"), item.name, json.dumps(dict(item.arguments))
                events, ends = response.call(*call, last=True), not conversation.parallel_calls
            elif isinstance(item, TokenBurst):
                spoken.tokens += len(item.ids)
                spoken.ending = CONTENT_FILTERED if FILTERED in item.facts else spoken.ending
                events, ends = response.text(item.text), most != "inf" and spoken.tokens >= most
                spoken.ending = TOO_LONG if ends else spoken.ending
            else:
                continue
            said = said or bool(events)
            for event in events:
                out.put(event)
            if isinstance(item, TokenBurst):
                written = True
                await write(item)  # only now: its sound follows the events that begin the message
            if ends:
                return written
    limited = conversation.standing.limited
    spoken.ending = spoken.ending or (TOO_LONG if limited else None if said else NOTHING_SAID)
    return written


async def _speak(
    dialogue: ClientConversation, out: Out, spoken: SpokenResponse, clause: Clause
) -> None:
    """Synthesise a clause, and send the audio."""
    tts, voice = dialogue.engines.tts, spoken.response.settings.audio.output.voice
    steps = tts.synthesize(clause, voice, dialogue.skills.voice.speed)
    resampler = Resampler(tts.rate, RATE)
    async with aclosing(dialogue.engines.tts_runner.stream(steps, priority=GUESS)) as chunks:
        pieces = [resampler.feed(chunk.pcm) async for chunk in chunks]
    for pcm in (*pieces, resampler.flush()):
        for event in spoken.response.audio(spoken.encoder.feed(pcm)):
            out.put(event)
