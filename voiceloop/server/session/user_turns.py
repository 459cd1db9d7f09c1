"""What the user says: the audio that a client appends, clears and commits, and the events that
report turns to the client.

Either the server finds the turns in the audio, or the client says where they end. The events are
the start of a turn, its end, its transcript, and long silences. A sound during a response may be a
cough or the user's words. Until the sound interrupts the response, the client gets only tentative
words of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from voiceloop.asr.turns import Detector, ManualTurnDetector, SpeechDetector
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.dialogue.endpoint import with_eagerness
from voiceloop.errors import ProtocolError
from voiceloop.server.session.audio import SocketMicrophone
from voiceloop.session import Session
from voiceloop.settings.config import TurnConfig
from voiceloop.trace.record import PARTS, endpoint_to_sound_ms, parts_ms, voice_to_voice_ms
from voiceloop.types import Transcript, TurnHeard, TurnTrace
from voiceloop.wire import server_events
from voiceloop.wire.client_events import InputAudioAppend, InputAudioCommit
from voiceloop.wire.items import RATE, InputAudioPart, Message, NewId
from voiceloop.wire.ledger import Ledger
from voiceloop.wire.server_events import ServerEvent, TentativeTranscript
from voiceloop.wire.settings import (
    AudioFormat,
    SemanticVad,
    ServerVad,
    SessionSettings,
    length,
)

LEAST_MS = 100
"""Length of the shortest turn that a client can commit, in milliseconds, as in OpenAI's API."""


class InputBuffer:
    """The `input_audio_buffer` of one connection."""

    def __init__(
        self,
        microphone: SocketMicrophone,
        session: Session,
        settings: SessionSettings,
        turns: TurnConfig,
        refuse: Callable[[ProtocolError, str | None], None],
    ) -> None:
        """`turns` are the server's turn settings. The client's `settings` replace some of them.
        `refuse` sends an error about an event of the client, with the event's id."""
        self._refuse = refuse
        self._microphone = microphone
        self._session = session
        self._turns = turns
        self._uncommitted = 0
        """Length of the audio since the last commit or clear, in samples at 24 kHz."""
        self.take(settings.audio.input.format)
        self.listen(settings)

    def take(self, format: AudioFormat) -> None:
        """Set the format of the audio that is appended from now on."""
        self._format = format
        self._microphone.take(format)

    def listen(self, settings: SessionSettings) -> None:
        """Find turns from now on as `settings` say. The turn that is being heard is forgotten."""
        self._detector, policy = _found_by(settings, self._turns)
        self._session.listen(self._detector, policy)

    def append(self, event: InputAudioAppend) -> None:
        """Append the audio of a message. Raises ProtocolError if it is not a whole number of
        samples."""
        audio = event.audio
        if len(audio) % self._format.sample_bytes:
            raise ProtocolError(
                f"audio has {len(audio)} byte{'s' * (len(audio) != 1)}, not a whole number of "
                "samples",
                "send PCM16: two bytes for each sample",
                code="invalid_value",
                param="audio",
            )
        self._uncommitted += length(audio, self._format)
        self._microphone.feed(audio)

    def commit(self, event: InputAudioCommit) -> None:
        """End the turn after the audio so far, as the client requests. Raises ProtocolError if the
        client ends all turns itself, and this one is too short."""
        if self._committed and self._uncommitted * 1000 < LEAST_MS * RATE:
            raise _empty(f"less than {LEAST_MS} ms of audio have come since the last turn")
        self._uncommitted = 0
        self._microphone.then(partial(self._end_turn, event.event_id), over=True)

    def clear(self) -> None:
        """Forget the audio since the last turn."""
        self._uncommitted = 0
        self._microphone.clear()
        self._session.forget()

    @property
    def lacks(self) -> bool:
        """Whether a turn is being heard that only more audio can end."""
        return self._session.hears and not self._committed

    @property
    def _committed(self) -> bool:
        """Whether the client says where turns end."""
        return isinstance(self._detector, ManualTurnDetector)

    def _end_turn(self, event_id: str | None) -> None:
        """End the turn now that all audio of it is heard. With turn detection there may be none: a
        silence may have ended it before."""
        if self._session.hears:
            self._session.end_turn(self._detector.end())
        elif not self._committed:
            self._refuse(_empty("the user has said nothing since the last turn"), event_id)


def _empty(message: str) -> ProtocolError:
    return ProtocolError(message, "append audio first", code="input_audio_buffer_commit_empty")


def _found_by(settings: SessionSettings, turns: TurnConfig) -> tuple[Detector, TurnConfig]:
    """Return the detector that finds the user's turns, and the settings that say where they end."""
    match settings.audio.input.turn_detection:
        case None:
            return ManualTurnDetector(turns), turns
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
    return SpeechDetector(turns), turns


class UserTurns:
    """A reporter of the user's turns, for the client of one connection."""

    def __init__(self, new_id: NewId, ledger: Ledger, send: Callable[[ServerEvent], None]) -> None:
        self.silent_since: int | None = None
        """Microphone sample at which the last response ended. None if there was none, or if since
        then the user has spoken, another response has begun, or the silence was reported."""
        self._new_id = new_id
        self._ledger = ledger
        self._send = send
        self._ids: dict[int, str] = {}
        """Item ids of the user's messages, by turn, until the turn is forgotten."""
        self._held: dict[int, list[TurnHeard]] = {}
        """Starts and ends of turns that are held back, by turn, until it is decided whether the
        turn interrupts."""
        self._heard: dict[int, tuple[int, int]] = {}
        """First and latest sample of a turn, at 16 kHz, by turn, until the turn is forgotten."""

    @property
    def in_turn(self) -> bool:
        """Whether a turn of the user has begun and is not over."""
        return bool(self._ids)

    def turn(self, event: TurnHeard, settings: SessionSettings) -> None:
        """Report the start or end of a turn, unless the turn is held back."""
        self.silent_since = None
        if not event.over:
            self._ids[event.turn] = self._new_id("item")
        begin, _ = self._heard.get(event.turn, (event.sample, 0))
        self._heard[event.turn] = begin, event.sample
        if event.turn in self._held:
            self._held[event.turn].append(event)
        elif event.turn in self._ids:
            self._report(event, settings)

    def hold(self, turn: int) -> None:
        """Hold back the events of a turn until it is decided whether it interrupts."""
        self._held.setdefault(turn, [])

    def interrupts(self, turn: int, settings: SessionSettings) -> None:
        """Send the events of a turn that were held back, since it interrupts."""
        for event in self._held.pop(turn, []):
            self._report(event, settings)

    def forget(self, turn: int) -> str | None:
        """Forget a turn that is over or did not interrupt. Return the item id of its message; None
        if it has none."""
        self._held.pop(turn, None)
        self._heard.pop(turn, None)
        return self._ids.pop(turn, None)

    def transcript(self, event: Transcript, settings: SessionSettings) -> None:
        """Report a final transcript, or a partial one if the client wants tentative words."""
        item_id = self._ids.get(event.turn)
        if item_id is None:
            return
        if settings.voiceloop.tentative_words:
            tentative = " ".join(word.text for word in event.tentative)
            self._send(TentativeTranscript(item_id, event.committed_text, tentative))
        if not event.final or event.turn in self._held:
            return
        part = InputAudioPart(transcript=event.text)
        for change in self._ledger.replace(Message("user", (part,), item_id)):
            self._send(change)
        if settings.audio.input.transcription is None:
            return
        self._send(server_events.TranscriptionDelta(item_id, 0, event.text))
        begin, end = self._heard.get(event.turn, (0, 0))
        usage = server_events.TranscriptionUsage(round((end - begin) / SPEECH_RATE, 3))
        self._send(server_events.TranscriptionCompleted(item_id, 0, event.text, usage))

    def fail(self, turn: int, reason: str, sample: int, settings: SessionSettings) -> None:
        """Report that the speech up to `sample` could not be recognised. If the turn was still in
        progress, report its end first."""
        item_id = self._ids.get(turn)
        if item_id is None or turn in self._held:
            return
        if not any(item.id == item_id for item in self._ledger.items):
            self._report(TurnHeard(turn, sample, over=True), settings)
        if settings.audio.input.transcription is not None:
            error = server_events.TranscriptionError("server_error", reason)
            self._send(server_events.TranscriptionFailed(item_id, 0, error))

    def idle(self, position: int, settings: SessionSettings) -> bool:
        """Report a long silence, once, with an empty message of the user. Return whether that was
        done.

        A silence is long if from the end of the last response to the sample `position` the user has
        said nothing for the `idle_timeout_ms` that the client has set.
        """
        detection = settings.audio.input.turn_detection
        limit_ms = detection.idle_timeout_ms if isinstance(detection, ServerVad) else None
        since = self.silent_since
        if limit_ms is None or since is None or position - since < samples(limit_ms):
            return False
        self.silent_since = None
        item_id = self._new_id("item")
        begin, end = (at * 1000 // SPEECH_RATE for at in (since, position))
        self._send(server_events.InputTimeout(item_id, begin, end))
        self._commit(Message("user", (InputAudioPart(transcript=""),), item_id))
        return True

    def _report(self, event: TurnHeard, settings: SessionSettings) -> None:
        """Send the events for the start or end of a turn. Without turn detection, a start sends no
        event."""
        item_id, ms = self._ids[event.turn], event.sample * 1000 // SPEECH_RATE
        found = settings.audio.input.turn_detection is not None
        if not event.over:
            if found:
                self._send(server_events.InputSpeechStarted(item_id, ms))
            return
        if found:
            self._send(server_events.InputSpeechStopped(item_id, ms))
        self._commit(Message("user", (InputAudioPart(),), item_id))

    def _commit(self, item: Message) -> None:
        """Report that audio has become a message, and add the message to the conversation."""
        self._send(server_events.InputCommitted(item.id, self._ledger.last_id))
        for change in (*self._ledger.begin(item), *self._ledger.finish(item)):
            self._send(change)


def trace_fields(trace: TurnTrace) -> dict[str, object]:
    """Return a turn's trace as the client gets it; durations are in milliseconds."""
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
