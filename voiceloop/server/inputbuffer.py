"""The audio that a client appends, clears and commits. Either the server finds the turns in it, or
the client says where they end."""

from __future__ import annotations

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
    ) -> None:
        """`turns` are the server's turn settings. The client's `settings` replace some of them."""
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

    def commit(self) -> None:
        """End the turn after the audio so far, as the client requests. Raises ProtocolError if the
        server finds turns, or if the turn is too short."""
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
        self._microphone.then(self._end_turn, over=True)

    def clear(self) -> None:
        """Forget the audio since the last turn."""
        self._uncommitted = 0
        self._microphone.clear()
        self._session.forget()

    def _end_turn(self) -> None:
        """End the turn now that all audio of it is heard."""
        if isinstance(self._detector, Commitment):  # turn detection may be on by now
            self._session.end_turn(self._detector.end())


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
