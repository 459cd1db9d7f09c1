"""Makes takes: a take is the record of a real session that heard one clip in one mode.

Modes that are compared replay the endpoint decisions of the same take. So they have the same
endpoints, and differ only in the rest of the latency. This module computes no figures.

A session hears the clip in a simulated room, whose microphone runs at real-time pace like a live
one. It knows when each of its samples was recorded, so that events can be compared with the speech
in the clip.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import anyio
import anyio.lowlevel
from msgspec import structs

from voiceloop.asr.turns import SilenceLasts, SpeechDetector, TurnEnded, TurnEvent
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import FRAME_MS, SPEECH_RATE, samples
from voiceloop.bench.clips import Clip
from voiceloop.engines import AsrRequest, Engines, Llm
from voiceloop.session import Session
from voiceloop.settings.config import Config, TurnConfig
from voiceloop.turn.resources import EVERYTHING, SEQUENTIAL, STREAMING, Overlap
from voiceloop.types import AudioFrame, Event, Pcm, Transcript, TurnTrace

SPEAKER_RATE = 24_000
HEARD_S = 0.2
"""Seconds of each reply that are played in real time, if only its beginning matters."""
PATIENCE_S = 4.0
"""Seconds that a turn may be longer than its clip. Then it is ended by force, because babble in the
background may keep it from ending."""
LIMIT_S = 60.0
"""Seconds beyond the length of its clip after which a take fails with TimeoutError."""


class Room:
    """A microphone (`voiceloop.audio.devices.Microphone`) that hears a clip.

    Its clock cannot be held, so it also hears while a reply plays.
    """

    interrupted: int | None = None
    """Index of the stream's sample at which an interrupting sound began; None without such a sound.
    Only rooms of the lab have one."""

    def __init__(self, clip: Clip) -> None:
        self.clip = clip
        self.position = 0
        """Number of samples that have been recorded."""
        self._begun = 0.0

    @property
    def finished(self) -> bool:
        """True once the whole clip has been heard."""
        return self.position >= len(self.clip.pcm)

    def see(self, event: Event) -> None:
        """Receive an event that the session shows. This room ignores it."""

    def heard(self, start: int, count: int) -> Pcm:
        """Return `count` samples from `start` on. They must have been recorded by now."""
        return self.clip.read(start, count)

    def recorded(self, sample: int) -> float:
        """Return when `sample` was recorded, in seconds of the event loop's clock."""
        return self._begun + sample / SPEECH_RATE

    def hold(self) -> None:
        """Do nothing: the clock of a room cannot be held."""

    def release(self) -> None:
        """Do nothing: the clock was not held."""

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 10 ms, each as soon as its last sample has been recorded."""
        size = samples(FRAME_MS)
        await anyio.lowlevel.checkpoint()
        self._begun = anyio.current_time()
        while True:
            start = self.position
            await anyio.sleep_until(self._begun + (start + size) / SPEECH_RATE)
            pcm = self.heard(start, size)
            self.position = start + size
            yield AudioFrame(pcm, SPEECH_RATE, start)


class BriefSpeaker(NullSpeaker):
    """A speaker that plays the beginning of a reply in real time, and the rest at once.

    It saves time where only the beginning of each reply is measured.
    """

    def __init__(self, rate: int, seconds: float) -> None:
        """Play the first `seconds` of each stretch of sound in real time."""
        super().__init__(rate)
        self._brief = round(seconds * rate)

    def due(self) -> float:
        """Return when a sample written now would play, in seconds of the event loop's clock."""
        now = anyio.current_time()
        heard = min(self._count, self._brief)
        return max(now, self._since + heard / self.rate)


@dataclass(frozen=True, slots=True)
class SessionMode:
    """A way of running a session."""

    name: str
    overlap: Overlap = EVERYTHING
    drafts: bool = True
    """True if the language model uses its draft."""
    endpoint: dict[str, object] = field(default_factory=dict[str, object])
    """Changes to the section `turns` of the settings. If there are any, the mode itself decides
    where turns end."""


FOLLOWED = SessionMode("speculative")
"""The mode whose endpoint decisions the others replay."""
MODES = (
    SessionMode("sequential", SEQUENTIAL, drafts=False),
    SessionMode("streaming", STREAMING),
    FOLLOWED,
)


class RecordingDetector(SpeechDetector):
    """A speech detector that records its decisions."""

    def __init__(self, config: TurnConfig) -> None:
        super().__init__(config)
        self.events: list[TurnEvent] = []
        self._reporting = False

    def feed(self, frame: AudioFrame, probability: float) -> Iterable[TurnEvent]:
        """Return the events of a frame, and record them."""
        return self._remembered(super().feed(frame, probability))

    def between(self, rest: AudioFrame) -> Iterable[TurnEvent]:
        """Return the events of `rest`, the beginning of the next frame, and record them."""
        return self._remembered(super().between(rest))

    def end(self) -> TurnEnded:
        """End the turn, and record the endpoint."""
        ended = super().end()
        # Outside of a report, the session ends the turn some time after the last frame. A replay
        # does not know that time, so it decides with the next frame.
        late = 0 if self._reporting else 1
        self.events.append(structs.replace(ended, sample=ended.sample + late))
        return ended

    def _remembered(self, events: Iterable[TurnEvent]) -> Iterator[TurnEvent]:
        for event in events:
            if not isinstance(event, SilenceLasts):
                self.events.append(event)
            self._reporting = True
            yield event
            self._reporting = False


class Replayed(RecordingDetector):
    """A speech detector that replays recorded decisions."""

    def __init__(self, config: TurnConfig, events: Sequence[TurnEvent]) -> None:
        super().__init__(config)
        self._left = list(events)

    def feed(self, frame: AudioFrame, probability: float) -> list[TurnEvent]:
        """Return the decisions that are due by the end of a frame."""
        return self._due(frame)

    def between(self, rest: AudioFrame) -> list[TurnEvent]:
        """Return the decisions that are due by the end of `rest`."""
        return self._due(rest)

    def _due(self, frame: AudioFrame) -> list[TurnEvent]:
        due = [event for event in self._left if event.sample <= frame.end]
        self._left = self._left[len(due) :]
        self.events += due
        return due


@dataclass(frozen=True, slots=True)
class Take:
    """The record of one clip in one mode."""

    mode: str
    events: tuple[TurnEvent, ...]
    """Beginnings, pauses and ends of turns, in samples of the room's stream."""
    traces: tuple[TurnTrace, ...]
    transcripts: tuple[Transcript, ...]
    """The final transcripts."""
    interrupted: int | None
    """Sample of the room's stream at which an interrupting sound began; None without one."""
    began: float
    """When sample 0 was recorded, in seconds of the event loop's clock."""
    cpu_s: float
    """Seconds of processor time that all threads used."""


@dataclass(frozen=True, slots=True)
class Studio:
    """The engines and settings for making takes."""

    engines: Engines
    plain: Llm
    """The language model without its draft."""
    config: Config

    def take(
        self, mode: SessionMode, clip: Clip, replay: Sequence[TurnEvent] | None = None
    ) -> Take:
        """Play `clip` to a session. If `replay` is given, its endpoint decisions are replayed."""
        return anyio.run(self._take, mode, clip, replay)

    def whole(self, clip: Clip) -> str:
        """Transcribe the whole `clip`, in as few windows as possible."""
        asr = self.engines.asr
        limit = round(asr.max_window_s * SPEECH_RATE)
        parts = [clip.pcm[at : at + limit] for at in range(0, len(clip.pcm), limit)]
        return " ".join(word.text for part in parts for word in asr.transcribe(AsrRequest(part)))

    def stage(self, clip: Clip) -> tuple[Room, NullSpeaker]:
        """Return the room in which a session hears `clip`, and the speaker for its replies."""
        return Room(clip), BriefSpeaker(SPEAKER_RATE, HEARD_S)

    async def _take(
        self, mode: SessionMode, clip: Clip, replay: Sequence[TurnEvent] | None
    ) -> Take:
        turns = structs.replace(self.config.turns, **mode.endpoint)
        longest_s = min(turns.max_turn_s, len(clip.pcm) / SPEECH_RATE + PATIENCE_S)
        turns = structs.replace(turns, max_turn_s=longest_s)
        answers = structs.replace(self.config.llm, skills="none")  # the model answers everything
        config = structs.replace(self.config, turns=turns, llm=answers)
        llm = self.engines.llm if mode.drafts else self.plain
        engines = replace(self.engines, llm=llm)
        engines.vad.reset()
        detector = (
            RecordingDetector(config.turns) if replay is None else Replayed(config.turns, replay)
        )
        room, speaker = self.stage(clip)
        traces: list[TurnTrace] = []
        finals: list[Transcript] = []

        def show(event: Event) -> None:
            room.see(event)
            match event:
                case TurnTrace():
                    traces.append(event)
                case Transcript() if event.final:
                    finals.append(event)
                case _:
                    pass

        session = Session(
            engines,
            room,
            speaker,
            config,
            show,
            full_duplex=True,
            overlap=mode.overlap,
            detector=detector,
        )
        used = time.process_time()
        with anyio.fail_after(LIMIT_S + len(clip.pcm) / SPEECH_RATE):
            await session.run()
        return Take(
            mode.name,
            tuple(detector.events),
            tuple(traces),
            tuple(finals),
            room.interrupted,
            room.recorded(0),
            time.process_time() - used,
        )
