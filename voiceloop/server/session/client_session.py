"""The client session: it turns a client's events into calls of a session, and the session's events
into events for the client.

All methods except `run` and `stop` return without waiting, so no event overtakes another. Its
`Host` decides what a client may do and how much, and how events travel.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio
from msgspec import UnsetType

from voiceloop import types
from voiceloop.audio.devices import DcBlocker, FilteredMicrophone
from voiceloop.errors import ProtocolError
from voiceloop.languages import language
from voiceloop.recording.recording import Recording, Surroundings
from voiceloop.server.ops.logs import TurnLog
from voiceloop.server.session.audio import SocketMicrophone
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.history import SILENCE
from voiceloop.server.session.response_requests import ResponseRequests
from voiceloop.server.session.responses import Out, Responses
from voiceloop.server.session.user_turns import InputBuffer, UserTurns, trace_fields
from voiceloop.session import Session
from voiceloop.trace.otel import About, Report, WordsSaid
from voiceloop.trace.record import Mark
from voiceloop.view.transcript import TurnText
from voiceloop.wire import client_events, server_events
from voiceloop.wire.responses import CLIENT_CANCELLED
from voiceloop.wire.settings import LlmServer, as_told

logger = logging.getLogger(__name__)


EDITS = (
    client_events.SessionUpdate,
    client_events.ItemCreate,
    client_events.ItemDelete,
    client_events.ItemTruncate,
)
"""The events by which a client changes what is kept of its session."""


class Host(Protocol):
    """The connection of a client session, which says which session its client has."""

    def ended(self, trace: types.TurnTrace) -> None:
        """Take note of a turn that has ended."""

    def spent(self, written: float, read: float) -> None:
        """Charge tokens that the language model has written and read outside of turns."""

    def changed(self, event: client_events.ClientEvent) -> None:
        """Take note that the client has changed what is kept of its session by `event`."""

    def confirm_token(self, event: client_events.TokenReceived) -> None:
        """Take note that the client has its newest token."""

    def use(self, event: client_events.UseLlmServer) -> None:
        """Use another language-model server, or raise ProtocolError."""

    def resume(self, event: client_events.Resume) -> None:
        """Give the client its former session, or raise ProtocolError."""

    def open(self, event: client_events.OpenConversation) -> None:
        """Give the client a session with a kept conversation, or raise ProtocolError."""


class ClientSession:
    """One connection of a client, from its start to its end. `run` it once.

    It has many attributes: the parts that carry events from the client to the session and back.
    State that outlives the connection is in its `ClientConversation`. A client that comes back gets
    a new client session.
    """

    def __init__(
        self,
        dialogue: ClientConversation,
        out: Out,
        host: Host,
        *,
        report: Report | None = None,
        record: Path | None = None,
    ) -> None:
        """`out` sends events to the client. `report` is called with each turn that has ended, for
        telemetry. With `record`, the session is recorded in that folder while it runs."""
        self._dialogue = dialogue
        self._out = out
        self._host = host
        self._listening = UserTurns(dialogue.new_id, dialogue.ledger, out.put)
        self._responses = Responses(dialogue.new_id, dialogue.ledger, dialogue.id, out)
        self.microphone = SocketMicrophone(self._note_silence, lambda: self._buffer.lacks)
        around = Surroundings(
            FilteredMicrophone(self.microphone, DcBlocker(self._note_muted)),
            self._responses.speaker,
            TurnLog(self.show, partial(_tell, dialogue, report)).show,
        )
        self._recording: Recording | None = None
        if record is not None:
            self._recording = Recording(record, dialogue.config, _note_lost, full_duplex=True)
            around = self._recording.around(around)
        self.session = Session(
            *(dialogue.engines, around.microphone, around.speaker, dialogue.config, around.show),
            core=around.core,
            full_duplex=True,
            conversation=dialogue.conversation,
            skills=dialogue.skills,
            toolbox=dialogue.toolbox,
            kept=dialogue.kept.note if dialogue.kept else None,
        )
        self._buffer = InputBuffer(
            self.microphone, self.session, dialogue.settings, dialogue.config.turns, out.refuse
        )
        self._requests = ResponseRequests(
            *(dialogue, self.session, self.microphone, self._responses, out),
            *(self._begin_response, host.spent),
        )
        self._handlers: Mapping[type[client_events.ClientEvent], Callable[[Any], None]] = {
            client_events.SessionUpdate: self._update,
            client_events.InputAudioAppend: self._buffer.append,
            client_events.InputAudioCommit: self._buffer.commit,
            client_events.InputAudioClear: self._clear,
            client_events.ItemCreate: self._requests.create_item,
            client_events.ItemRetrieve: self._requests.retrieve_item,
            client_events.ItemDelete: self._requests.delete_item,
            client_events.ItemTruncate: self._requests.truncate_item,
            client_events.ResponseCreate: self._requests.ask,
            client_events.ResponseCancel: self._cancel,
            client_events.Played: self._responses.played,
            client_events.TokenReceived: host.confirm_token,
            client_events.UseLlmServer: host.use,
            client_events.Resume: host.resume,
            client_events.OpenConversation: host.open,
        }
        """What carries out each kind of event of the client."""
        self._noticed = ""
        """Text of the session's last notice, which says what went wrong if a turn fails."""
        self._scope, self._over = anyio.CancelScope(), anyio.Event()
        self._conduct()
        self.session.language = dialogue.language

    @property
    def in_turn(self) -> bool:
        """Whether the user speaks, waits for an answer, or hears it."""
        asked = self._requests.waits or not self.session.idle
        return asked or self._listening.in_turn or self._responses.responding

    def welcome(self) -> None:
        """Send a new client the settings of its session, and the items of a conversation that was
        kept."""
        self._out.put(server_events.SessionCreated(as_told(self._dialogue.settings)))
        self._requests.send_items(self._dialogue.ledger.told_again())

    def offer(
        self, llm_servers: tuple[LlmServer, ...], conversations: tuple[str, ...] | UnsetType
    ) -> None:
        """Set what the client may choose from: language-model servers, and kept conversations. Send
        the client its settings if they changed."""
        dialogue = self._dialogue
        before = dialogue.settings
        dialogue.offer(llm_servers=llm_servers, conversations=conversations)
        if dialogue.settings != before:
            self._out.put(server_events.SessionUpdated(as_told(dialogue.settings)))

    def welcome_back(self) -> None:
        """Send all items of the conversation to a client that has come back, and let the language
        model read them."""
        self._requests.rewrite()
        self._requests.send_items(self._dialogue.ledger.told_again())

    async def run(self) -> None:
        """Converse until `stop` is called."""
        try:
            with self._scope:
                async with (
                    self._recording or nullcontext(),
                    self._keeping(),
                    self._requests.beside(),
                ):
                    await self.session.run()
        finally:
            self._responses.leave(self.session.words_heard)
            self._dialogue.language = self.session.language
            self._dialogue.offer()  # the next connection may come from another machine
            self._over.set()

    @asynccontextmanager
    async def _keeping(self) -> AsyncGenerator[None]:
        """Keep what is heard while the context lasts, if the conversation is kept."""
        kept = self._dialogue.kept
        if kept is None:
            yield
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kept.follow, self.session, self._note_unkept)
            yield
            tasks.cancel_scope.cancel()

    async def stop(self) -> None:
        """End the session, since its client goes. Wait until nothing of it runs any more."""
        self._scope.cancel()
        await self._over.wait()

    # ---- events from the client

    def handle(self, event: client_events.ClientEvent) -> None:
        """Carry out an event of the client. Raises ProtocolError if that is not possible."""
        self._handlers[type(event)](event)
        if isinstance(event, EDITS):
            self._host.changed(event)

    def _clear(self, event: client_events.InputAudioClear) -> None:
        self._buffer.clear()
        self._out.put(server_events.InputCleared())

    def _update(self, event: client_events.SessionUpdate) -> None:
        dialogue = self._dialogue
        before, spoken = dialogue.settings, dialogue.asked_language
        dialogue.update(event.session, partial(self._out.refuse, event_id=event.event_id))
        settings = dialogue.settings
        self._buffer.take(settings.audio.input.format)
        if settings.audio.input.turn_detection != before.audio.input.turn_detection:
            self._buffer.listen(settings)
        if dialogue.seen(settings) != dialogue.seen(before):
            self._requests.rewrite()
        self._conduct()
        if dialogue.asked_language != spoken:  # otherwise keep a language that was detected
            self.session.language = language(dialogue.asked_language)
        self._out.put(server_events.SessionUpdated(as_told(settings)))

    def _conduct(self) -> None:
        """Pass the settings that are about turns and replies on to the session."""
        settings = self._dialogue.settings
        detection = settings.audio.input.turn_detection
        self.session.conduct(
            self._dialogue.options(settings),
            answers=detection is not None and detection.create_response,
            interruptible=detection is not None and detection.interrupt_response,
            thinks=not self._dialogue.transcribes,
        )

    def _cancel(self, event: client_events.ResponseCancel) -> None:
        """Stop a response. Raises ProtocolError if it is not in progress."""
        if event.response_id is None:
            turn = self.session.cancel()
        elif self._responses.withdraw(event.response_id, CLIENT_CANCELLED):
            return
        elif (turn := self._responses.turn_of(event.response_id)) is not None:
            turn = self.session.cancel(turn)
        if turn is None:
            raise ProtocolError(
                "no such response is in progress",
                "response.done tells when one is over",
                code="response_cancel_not_active",
                param="response_id",
            )
        self._begin_response(turn)  # it may be cancelled before its first word
        self._responses.cancel(turn)

    # ---- events from the session

    def show(self, event: types.Event) -> None:
        """Send the client the events that follow from an event of the session."""
        match event:
            case types.TurnHeard():
                self._requests.unanswered.moved_on()
                self._listening.turn(event, self._dialogue.settings)
            case types.FloorChange():
                self._note_floor(event)
            case types.Transcript():
                self._listening.transcript(event, self._dialogue.settings)
                answered = event.final and event.text and self.session.expected
                if answered and not self._responses.responding:
                    self._begin_response(event.turn)
            case types.TokenBurst():
                self._begin_response(event.turn)
                self._responses.burst(event)
            case types.ToolCall():
                self._note_call(event)
            case types.Clause():
                self._begin_response(event.turn)
                self._responses.clause(event, report=self._dialogue.settings.voiceloop.clauses)
            case types.Notice():
                self._noticed = event.text
            case types.TurnTrace():
                self._note_end(event)

    def _note_muted(self) -> None:
        logger.warning("hearing only silence: the client's microphone may be muted")

    def _note_unkept(self, text: str) -> None:
        logger.warning("a conversation is no longer kept", extra={"why": text})
        self._out.put(server_events.Error(server_events.ErrorDetails("server_error", text)))

    def _note_silence(self, position: int) -> None:
        """Let the model speak if the user has been silent for as long as the client has set."""
        if self._listening.idle(position, self._dialogue.settings):
            self.session.write(SILENCE)

    def _note_floor(self, event: types.FloorChange) -> None:
        """Report that the user may be interrupting a response, and later whether this was so."""
        settings, item_id = self._dialogue.settings, self._responses.item_of(event.rival)
        reports = item_id is not None and settings.voiceloop.pause
        logger.info("the user may interrupt", extra={"change": event.change, "item": item_id})
        match event.change:
            case "paused":
                self._listening.hold(event.turn)
                if reports and item_id:
                    self._out.put(server_events.OutputPaused(item_id))
            case "resumed":
                self._listening.forget(event.turn)
                if reports and item_id:
                    self._out.put(server_events.OutputResumed(item_id))
            case "interrupted":
                self._responses.interrupt(event.rival)
                self._listening.interrupts(event.turn, settings)

    def _note_call(self, call: types.ToolCall) -> None:
        if call.result:
            self._responses.done(call)
        if not call.client:
            return
        self._begin_response(call.turn)
        self._requests.unanswered.call(self._responses.call(call), call)

    def _begin_response(self, turn: int) -> None:
        """Begin the response to a turn, unless it has begun."""
        if not self._responses.begun(turn):
            self._dialogue.typed = True
            self._listening.silent_since = None
            self._requests.unanswered.begin(turn)
            self._responses.begin(turn, self._requests.take())

    def _note_end(self, trace: types.TurnTrace) -> None:
        """End the response to a turn that is over, and begin those that waited for it."""
        dialogue, settings = self._dialogue, self._dialogue.settings
        if trace.outcome == "failed" and Mark.TRANSCRIPT_FINAL not in trace.marks:
            sample = self.microphone.position
            self._listening.fail(trace.turn, self._noticed, sample, settings)
        item_id = self._listening.forget(trace.turn)
        dialogue.language = self.session.language
        if trace.outcome in ("done", "silent", "failed") and not dialogue.transcribes:
            self._begin_response(trace.turn)  # it may have ended before its first word
        if trace.outcome not in ("done", "silent"):
            self._requests.unanswered.moved_on()
        spoken = self._responses.end(trace, self._noticed)
        if spoken is not None:
            self._listening.silent_since = self.microphone.position
            given = spoken.response.settings
            seen = dialogue.seen
            other = given.conversation == "none" or given.input is not None
            if other or seen(given) != seen(settings):
                self._requests.rewrite()
            if spoken.stopped is not None:
                try:
                    self._requests.truncate_item(spoken.stopped)
                except ProtocolError as error:
                    self._out.refuse(error, spoken.stopped.event_id)
        if dialogue.kept and dialogue.kept.refreshes():
            self._requests.rewrite()  # without what the user wants to be forgotten
        self._requests.go_on()
        if settings.voiceloop.traces:
            response_id = spoken.response.id if spoken else None
            self._out.put(server_events.TraceSent(response_id, item_id, trace_fields(trace)))
        self._host.ended(trace)


def _tell(
    dialogue: ClientConversation, report: Report | None, trace: types.TurnTrace, text: TurnText
) -> None:
    """Report a turn that has ended, with its words."""
    if report is not None:
        engines = dialogue.engines
        about = About(dialogue.id, engines.llm.name, engines.asr.name, engines.tts.name)
        report(trace, about, WordsSaid(text.said, text.reply))


def _note_lost(text: str) -> None:
    logger.warning("a recording has ended too early", extra={"why": text})
