"""The audio that a client appends, clears and commits. Either the server finds the turns in it, or
the client says where they end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from voiceloop.asr.turns import Commitment, Detector, SpeechDetector
from voiceloop.config import TurnConfig
from voiceloop.dialogue.endpoint import with_eagerness
from voiceloop.errors import ProtocolError
from voiceloop.server.audio import SocketMicrophone
from voiceloop.session import Session
from voiceloop.wire.settings import (
    AudioFormat,
    SemanticVad,
    ServerVad,
    SessionSettings,
    length,
)
from voiceloop.wire.sound import RATE

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

    def append(self, audio: bytes) -> None:
        """Append the audio of a message. Raises ProtocolError if it is not a whole number of
        samples."""
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

    def commit(self, event_id: str | None) -> None:
        """End the turn after the audio so far, as the client requests. Raises ProtocolError if the
        client ends all turns itself, and this one is too short."""
        if self._committed and self._uncommitted * 1000 < LEAST_MS * RATE:
            raise _empty(f"less than {LEAST_MS} ms of audio have come since the last turn")
        self._uncommitted = 0
        self._microphone.then(partial(self._end_turn, event_id), over=True)

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
        return isinstance(self._detector, Commitment)

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
    return SpeechDetector(turns), turns
