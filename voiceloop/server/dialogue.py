"""A client's side of a session: its events become calls of the session, and what the session shows
becomes events for the client.

Everything here happens at once, on the event loop: nothing waits, and no event overtakes another.
What the client may do and how much of it is decided elsewhere, and so is how events travel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from voiceloop.asr.turns import Commitment, Detector, TurnDetector
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.config import Config, TurnConfig
from voiceloop.dialogue.endpoint import with_eagerness
from voiceloop.dialogue.state import Options
from voiceloop.engines import Conversation, Engines
from voiceloop.errors import Code, ProtocolError
from voiceloop.languages import language
from voiceloop.server import choices
from voiceloop.server.audio import RATE, SocketMicrophone
from voiceloop.server.choices import about
from voiceloop.server.history import history, text_of
from voiceloop.server.listening import Listening
from voiceloop.server.speaking import Out, Speaking
from voiceloop.server.unanswered import Unanswered
from voiceloop.session import Session
from voiceloop.trace.record import PARTS, Mark, endpoint_to_sound_ms, parts_ms, voice_to_voice_ms
from voiceloop.types import (
    Clause,
    Event,
    FloorChange,
    Notice,
    TokenBurst,
    Tool,
    ToolCall,
    Transcript,
    TurnHeard,
    TurnTrace,
)
from voiceloop.wire.client_events import (
    ClientEvent,
    InputAudioAppend,
    InputAudioClear,
    InputAudioCommit,
    ItemCreate,
    ItemDelete,
    ItemRetrieve,
    ItemTruncate,
    ResponseCancel,
    ResponseCreate,
    SessionUpdate,
)
from voiceloop.wire.extensions import (
    OutputPaused,
    OutputResumed,
    Played,
    Resume,
    TraceTold,
)
from voiceloop.wire.ids import NewId
from voiceloop.wire.items import (
    FunctionCallOutput,
    InputAudioPart,
    Message,
)
from voiceloop.wire.ledger import Ledger
from voiceloop.wire.server_events import ServerEvent
from voiceloop.wire.session_events import (
    Error,
    InputCleared,
    ItemDeleted,
    SessionCreated,
    SessionUpdated,
)
from voiceloop.wire.settings import (
    Audio,
    OutputAudio,
    ResponseSettings,
    SemanticVad,
    ServerVad,
    SessionSettings,
    size,
)

logger = logging.getLogger(__name__)

LEAST_MS = 100
"""Shortest turn that a client can commit, as in the API."""
MOST_WAITING = 16
"""Responses that may be asked for ahead of the audio."""
SILENCE = "…"
"""What the language model reads where the user has said nothing for long."""


class Line:
    """The way to the client, while there is one; implements `Out`."""

    def __init__(self) -> None:
        self.out: Out | None = None

    def put(self, event: ServerEvent) -> None:
        """See `Out.put`."""
        if self.out is not None:
            self.out.put(event)

    def flush(self, item_id: str) -> int:
        """See `Out.flush`."""
        return 0 if self.out is None else self.out.flush(item_id)


class Dialogue:
    """One conversation of one client. It outlives a connection: `attach` gives it a new one.

    Its many attributes are of three lives: what the server gave it (engines, conversation, where
    metrics go), what the client made of it and keeps (settings, ledger), and what one connection
    has (session, microphone, listening, speaking, and what its client has asked for).
    """

    def __init__(
        self,
        engines: Engines,
        config: Config,
        conversation: Conversation,
        new_id: NewId,
        *,
        ended: Callable[[TurnTrace], None] = lambda trace: None,
        refused: Callable[[Code], None] = lambda code: None,
    ) -> None:
        """`ended` is told of every turn that is over, `refused` of every message that is refused
        after `handle` has returned."""
        self._engines = engines
        self._config = config
        self._conversation = conversation
        self._new_id = new_id
        self._ended = ended
        self._refused = refused
        self._line = Line()
        self.settings = SessionSettings(
            id=new_id("sess"),
            model=engines.llm.name,
            instructions=engines.llm.system,
            audio=Audio(output=OutputAudio(voice=engines.tts.voice)),
            voiceloop=about(config, engines.tts),
        )
        self.ledger = Ledger(new_id, max_bytes=config.server.conversation_bytes)
        self._id = new_id("conv")
        self._language = ""
        """What the user was last said to speak: a code, or to be detected."""
        self._new_connection()

    def _new_connection(self) -> None:
        self._listening = Listening(self._new_id, self.ledger, self._line.put)
        self._speaking = Speaking(self._new_id, self.ledger, self._id, self._line)
        self._unanswered = Unanswered()
        self._asked: ResponseSettings | None = None
        """What the client asked of the response that is about to begin."""
        self._answering: int | None = None
        """The last turn that the client has asked to be answered."""
        self._noticed = ""
        self._uncommitted = 0
        """Samples that have come since the client last ended a turn."""
        self._waiting = 0
        """Responses asked for before all audio that came earlier was heard."""
        self._silent_since: int | None = None
        """Sample of the microphone at which the last response ended, if nobody spoke since."""
        self.microphone = SocketMicrophone(self._note_silence)
        self._detector, policy = _found_by(self.settings, self._config.turns)
        self.session = Session(
            self._engines,
            self.microphone,
            self._speaking.speaker,
            self._config,
            self.show,
            full_duplex=True,
            detector=self._detector,
            conversation=self._conversation,
        )
        self.session.listen(self._detector, policy)
        self._apply()

    def attach(self, out: Out, *, anew: bool) -> Session:
        """Go on with a client that `out` reaches, and tell it what there is.

        Returns the session, to be run for as long as the connection lasts. Not `anew`, it is a
        client that has come back.
        """
        self._line.out = out
        if anew:
            self._line.put(SessionCreated(self.settings))
        else:
            spoken = self.session.language
            self._new_connection()
            self.session.language = spoken
            self._rewrite()
            self._tell(self.ledger.told_again())
        return self.session

    @property
    def responding(self) -> bool:
        """A response is in progress."""
        return self._speaking.newest is not None

    def close(self) -> None:
        """Give back what the language model keeps; on its own thread."""
        self._conversation.close()

    def detach(self) -> None:
        """The connection is gone: what was being said is cut off."""
        self._line.out = None
        self.microphone.close()

    # ---- what the client says

    def handle(self, event: ClientEvent) -> None:
        """Do what the client asks. Raises ProtocolError where that is not possible."""
        match event:
            case InputAudioAppend():
                self._uncommitted += len(event.audio) // 2
                self.microphone.feed(event.audio)
            case Played():
                self._speaking.played(event)
            case SessionUpdate():
                self._update(event)
            case InputAudioCommit():
                self._end_turn()
            case InputAudioClear():
                self._clear()
            case ItemCreate() | ItemRetrieve() | ItemDelete() | ItemTruncate():
                self._edit(event)
            case ResponseCreate():
                self._ask(event)
            case ResponseCancel():
                self._cancel()
            case Resume():
                raise ProtocolError(
                    "voiceloop.resume comes first, before anything else",
                    "send it as the first message of a connection",
                    code="resume_failed",
                )

    def _edit(self, event: ItemCreate | ItemRetrieve | ItemDelete | ItemTruncate) -> None:
        """Look at the conversation's items, or change them."""
        match event:
            case ItemCreate():
                self._create(event)
            case ItemRetrieve():
                self._line.put(self.ledger.retrieve(event.item_id))
            case ItemDelete():
                self._tell([self.ledger.delete(event.item_id)])
                self._rewrite()
            case ItemTruncate():
                self._truncate(event)

    def _update(self, event: SessionUpdate) -> None:
        before = self.settings
        updated = before.updated(event.session)
        self._check_size(updated, "session")
        voice = self._voice(updated.audio.output.voice, "session.audio.output.voice")
        choices.language(self._engines.asr, updated)
        output = replace(updated.audio.output, voice=voice)
        self.settings = replace(updated, audio=replace(updated.audio, output=output))
        if self.settings.audio.input.turn_detection != before.audio.input.turn_detection:
            self._detector, policy = _found_by(self.settings, self._config.turns)
            self.session.listen(self._detector, policy)
        if _seen(self.settings) != _seen(before):
            self._rewrite()
        self._apply()
        self._line.put(SessionUpdated(self.settings))

    def _check_size(self, settings: SessionSettings | ResponseSettings, param: str) -> None:
        most = self._config.server.conversation_bytes
        if (taken := size(settings)) > most:
            raise ProtocolError(
                f"instructions and tools take {taken} bytes, and {most} are the most",
                "give fewer tools, or describe them in fewer words",
                param=param,
            )

    def _voice(self, asked: str, param: str) -> str:
        return choices.voice(self._engines.tts, asked, param)

    def _apply(self) -> None:
        """Let the session be as the settings say."""
        detection = self.settings.audio.input.turn_detection
        self.session.conduct(
            _options(self.settings),
            answers=detection is not None and detection.create_response,
            interruptible=detection is not None and detection.interrupt_response,
        )
        asked = choices.language(self._engines.asr, self.settings) or self._config.asr.language
        if asked != self._language:  # else one that was detected stays
            self._language = asked
            self.session.language = language(asked)

    def _end_turn(self) -> None:
        if not isinstance(self._detector, Commitment):
            raise ProtocolError(
                "the server finds where turns end, and commits them itself",
                "to commit them yourself set audio.input.turn_detection to null",
                code="unsupported_event",
                param="type",
            )
        if self._uncommitted * 1000 < LEAST_MS * RATE:
            raise ProtocolError(
                f"less than {LEAST_MS} ms of audio have come since the last turn",
                "append audio first",
                code="input_audio_buffer_commit_empty",
            )
        self._uncommitted = 0
        self.microphone.then(self._commit, over=True)

    def _commit(self) -> None:
        if isinstance(self._detector, Commitment):  # and not changed meanwhile
            self.session.end_turn(self._detector.commit())

    def _clear(self) -> None:
        self._uncommitted = 0
        self.microphone.clear()
        self.session.forget()
        self._line.put(InputCleared())

    def _create(self, event: ItemCreate) -> None:
        item = event.item
        spoken = isinstance(item, Message) and any(
            isinstance(part, InputAudioPart) and part.transcript is None for part in item.content
        )
        if spoken:
            raise ProtocolError(
                "item.content has audio without its transcript",
                "send audio with input_audio_buffer.append",
                param="item.content",
            )
        self._tell(self.ledger.create(event))
        match item:
            case Message(role="user") if event.previous_item_id is None:
                assert self.ledger.last_id is not None, "it has just been added there"
                self._unanswered.write(self.ledger.last_id, text_of(item))
            case FunctionCallOutput() if self._unanswered.answers(item.call_id, item.output):
                pass
            case _:
                self._rewrite()

    def _truncate(self, event: ItemTruncate) -> None:
        def heard(samples: int) -> str:
            return self._speaking.heard(event.item_id, samples)

        self._line.put(self.ledger.truncate(event, heard))
        self._rewrite()

    def _ask(self, event: ResponseCreate) -> None:
        asked = self.settings.response(event.response)
        self._check_size(asked, "response")
        self._voice(asked.audio.output.voice, "response.audio.output.voice")
        if self._waiting >= MOST_WAITING:
            raise ProtocolError(
                f"{MOST_WAITING} responses are waiting for the audio before them to be heard",
                "ask for one after the other",
                code="rate_limit_exceeded",
            )
        self._waiting += 1
        self.microphone.then(lambda: self._asked_for(event))

    def _asked_for(self, event: ResponseCreate) -> None:
        """Begin a response, with what there is to respond to."""
        self._waiting -= 1
        if self.responding:
            busy = ProtocolError(
                "a response is in progress",
                "send response.cancel first, or wait for response.done",
                code="conversation_already_has_active_response",
            )
            self._refuse(busy, event.event_id)
            return
        asked = self.settings.response(event.response)
        voice = self._voice(asked.audio.output.voice, "response.audio.output.voice")
        output = replace(asked.audio.output, voice=voice)
        self._asked = replace(asked, audio=replace(asked.audio, output=output))
        options = _options(self._asked)
        if _seen(self._asked) != _seen(self.settings):
            self._rewrite(self._asked)
        missing = self._unanswered.missing()
        if results := self._unanswered.take_results():
            self._answering = self.session.answer_calls(results, options)
        elif self._unanswered.items:
            self._answering = self.session.write(self._unanswered.take_texts(), options)
        else:
            self._answering = self.session.respond(options)
        if self._answering is None:
            self._asked = None
            if _seen(asked) != _seen(self.settings):
                self._rewrite()
            message, hint = "there is nothing to respond to", "commit audio or create an item first"
            if missing:
                message = f"the output of {' and '.join(missing)} is missing"
                hint = "create an item with the output of each call, then one response for all"
            idle = ProtocolError(message, hint, code="nothing_to_respond_to")
            self._refuse(idle, event.event_id)

    def _cancel(self) -> None:
        turn = self.session.cancel()
        if turn is None:
            raise ProtocolError(
                "no response is in progress",
                "response.done tells when one is over",
                code="response_cancel_not_active",
            )
        self._begin_response(turn)  # where it ends before its first word
        self._speaking.cancel(turn)

    def _rewrite(self, settings: SessionSettings | ResponseSettings | None = None) -> None:
        """Let the language model see the conversation as the ledger has it."""
        settings = settings or self.settings
        system, exchanges = history(
            settings.instructions, self.ledger.items, self._unanswered.items
        )
        tools = _offered(settings)
        self.session.rewrite(lambda: self._conversation.rewrite(system, exchanges, tools))

    # ---- what the session shows

    def show(self, event: Event) -> None:
        """Tell the client."""
        match event:
            case TurnHeard():
                self._silent_since = None
                self._listening.turn(event, self.settings)
            case FloorChange():
                self._note_floor(event)
            case Transcript():
                self._listening.transcript(event, self.settings)
            case TokenBurst():
                self._begin_response(event.turn)
                self._speaking.burst(event)
            case ToolCall():
                self._note_call(event)
            case Clause():
                self._begin_response(event.turn)
                self._speaking.clause(event)
            case Notice():
                self._noticed = event.text
            case TurnTrace():
                self._note_end(event)

    def _note_silence(self, position: int) -> None:
        """Speak again where the user has said nothing for as long as the client has set."""
        detection = self.settings.audio.input.turn_detection
        limit_ms = detection.idle_timeout_ms if isinstance(detection, ServerVad) else None
        since = self._silent_since
        if limit_ms is None or since is None or position - since < samples(limit_ms):
            return
        self._silent_since = None
        self._listening.silence(since, position)
        self.session.write(SILENCE)

    def _note_floor(self, event: FloorChange) -> None:
        item_id = self._speaking.item_of(event.rival)
        told = item_id is not None and self.settings.voiceloop.pause
        logger.info("the user may interrupt", extra={"change": event.change, "item": item_id})
        match event.change:
            case "paused":
                self._listening.hold(event.turn)
                if told and item_id:
                    self._line.put(OutputPaused(item_id))
            case "resumed":
                self._listening.forget(event.turn)
                if told and item_id:
                    self._line.put(OutputResumed(item_id))
            case "interrupted":
                self._speaking.interrupt(event.rival)
                self._listening.interrupts(event.turn, self.settings)

    def _note_call(self, call: ToolCall) -> None:
        if not call.client:
            return
        self._begin_response(call.turn)
        self._unanswered.call(self._speaking.call(call), call)

    def _begin_response(self, turn: int) -> None:
        """The response to a turn begins with the first that is known of it."""
        if not self._speaking.begun(turn):
            settings, self._asked = self._asked or self.settings.response(), None
            self._silent_since = None
            self._speaking.begin(turn, settings)

    def _note_end(self, trace: TurnTrace) -> None:
        if trace.outcome == "failed" and Mark.TRANSCRIPT_FINAL not in trace.marks:
            self._listening.fail(trace.turn, self._noticed, self.settings)
        item_id = self._listening.forget(trace.turn)
        if trace.turn == self._answering or trace.outcome in ("done", "silent", "failed"):
            self._begin_response(trace.turn)  # where it ends before its first word
        response = self._speaking.end(trace, self._noticed)
        if response is not None:
            self._silent_since = self.microphone.position
            given = response.settings
            if _seen(given) != _seen(self.settings) or given.conversation == "none":
                self._rewrite()
        if self.settings.voiceloop.traces:
            response_id = response.id if response else None
            self._line.put(TraceTold(response_id, item_id, told(trace)))
        self._ended(trace)

    def _tell(self, events: Iterable[ServerEvent]) -> None:
        for event in events:
            if isinstance(event, ItemDeleted):
                self._unanswered.forget(event.item_id)
            self._line.put(event)

    def _refuse(self, error: ProtocolError, event_id: str | None) -> None:
        self._refused(error.code)
        self._line.put(Error.of(error, event_id))


def _found_by(settings: SessionSettings, turns: TurnConfig) -> tuple[Detector, TurnConfig]:
    """What finds the user's turns, and how they end."""
    match settings.audio.input.turn_detection:
        case None:
            return Commitment(turns), turns
        case ServerVad() as vad:
            turns = replace(
                turns,
                threshold=vad.threshold,
                release=min(turns.release, vad.threshold),
                pre_roll_ms=vad.prefix_padding_ms,
                endpoint="fixed",
                hangover_ms=vad.silence_duration_ms,
            )
        case SemanticVad() as vad:
            turns = with_eagerness(turns, vad.eagerness)
    return TurnDetector(turns), turns


def _offered(settings: SessionSettings | ResponseSettings) -> tuple[Tool, ...]:
    """The functions that the model may call."""
    if settings.tool_choice == "none":
        return ()
    return tuple(Tool(own.name, own.description, own.parameters) for own in settings.tools)


def _options(settings: SessionSettings | ResponseSettings) -> Options:
    """How a reply is to be."""
    most = settings.max_output_tokens
    return Options(
        spoken=settings.output_modalities == ("audio",),
        voice=settings.audio.output.voice,
        most_tokens=None if most == "inf" else most,
        client_tools=frozenset(tool.name for tool in _offered(settings)),
    )


def _seen(settings: SessionSettings | ResponseSettings) -> object:
    """What of the settings the language model gets to see."""
    return settings.instructions, _offered(settings)


def told(trace: TurnTrace) -> dict[str, object]:
    """A turn's record as the client is told it; durations in milliseconds."""
    parts, end = parts_ms(trace) or {}, trace.speech_end
    return {
        "turn": trace.turn,
        "outcome": trace.outcome,
        "heard": trace.heard,
        "speech_end_ms": None if end is None else end * 1000 / SPEECH_RATE,
        "voice_to_voice_ms": voice_to_voice_ms(trace),
        "endpoint_to_sound_ms": endpoint_to_sound_ms(trace),
        "parts": [
            {"name": name, "ms": round(ms, 3), "owner": PARTS[name][1]}
            for name, ms in parts.items()
        ],
        "counters": dict(trace.counters),
        "seed": trace.seed,
    }
