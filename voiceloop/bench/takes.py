"""A take: something said to a real session in one mode, and what came of it.

Modes that are compared replay the endpoint decisions of another take, so that none wins by deciding
later. This module neither judges nor adds up.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import anyio
from msgspec import structs

from voiceloop.asr.turns import TurnDetector, TurnEvent
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.clips import Clip
from voiceloop.bench.room import BriefSpeaker, Room
from voiceloop.config import Config, TurnConfig
from voiceloop.engines import AsrRequest, Engines, Llm
from voiceloop.session import Session
from voiceloop.turn.overlap import EVERYTHING, OVERLAPS, Overlap
from voiceloop.types import AudioFrame, Clause, Event, Transcript, TurnTrace

SPEAKER_RATE = 24_000
HEARD_S = 0.2
"""Of each reply that is played as time passes, where only its beginning matters."""
PATIENCE_S = 4.0
"""A turn that has not ended so long after its clip, as may happen in babble, is ended."""
LIMIT_S = 60.0
"""A take that lasts longer has gone wrong."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way of running a session."""

    name: str
    overlap: Overlap = EVERYTHING
    drafts: bool = True
    """The language model has its draft."""
    endpoint: dict[str, object] = field(default_factory=dict[str, object])
    """Settings of `turns` that differ; such a mode decides for itself where turns end."""


MODES = {
    mode.name: mode
    for mode in (
        *(Mode(name, overlap, drafts=overlap.stages) for name, overlap in OVERLAPS.items()),
        Mode("no-draft", drafts=False),
        Mode("fixed-600", endpoint={"endpoint": "fixed", "hangover_ms": 600}),
        Mode("trailing-words", endpoint={"endpoint": "trailing-words"}),
        Mode("p-eot", endpoint={"endpoint": "p-eot"}),
    )
}
"""All there are. `speculative` decides where turns end; the others follow it, but for the policies
of endpointing at the end."""


class Recorded(TurnDetector):
    """Decides as it is configured to, and remembers."""

    def __init__(self, config: TurnConfig) -> None:
        super().__init__(config)
        self.events: list[TurnEvent] = []
        self._looked = 0

    def feed(
        self, frame: AudioFrame, probability: float, hangover_ms: int | None = None
    ) -> list[TurnEvent]:
        """See `TurnDetector.feed`."""
        events = super().feed(frame, probability, hangover_ms)
        self.events += events
        return events

    def between(self, rest: AudioFrame, hangover_ms: int | None = None) -> list[TurnEvent]:
        """See `TurnDetector.between`."""
        events = super().between(rest, hangover_ms)
        if rest.end == self._looked:
            # Nothing more was heard; it was the hangover that became shorter, some time after that
            # frame. A replay cannot know when, and decides with the next one.
            self.events += [replace(event, sample=event.sample + 1) for event in events]
        else:
            self.events += events
        self._looked = rest.end
        return events


class Replayed(Recorded):
    """Decides what was decided before."""

    def __init__(self, config: TurnConfig, events: Sequence[TurnEvent]) -> None:
        super().__init__(config)
        self._left = list(events)

    def feed(
        self, frame: AudioFrame, probability: float, hangover_ms: int | None = None
    ) -> list[TurnEvent]:
        """See `TurnDetector.feed`."""
        return self._due(frame)

    def between(self, rest: AudioFrame, hangover_ms: int | None = None) -> list[TurnEvent]:
        """See `TurnDetector.between`."""
        return self._due(rest)

    def _due(self, frame: AudioFrame) -> list[TurnEvent]:
        due = [event for event in self._left if event.sample <= frame.end]
        self._left = self._left[len(due) :]
        self.events += due
        return due


@dataclass(frozen=True, slots=True)
class Take:
    """What came of it."""

    mode: str
    events: tuple[TurnEvent, ...]
    """Decisions about turns, in samples of the room's stream."""
    traces: tuple[TurnTrace, ...]
    transcripts: tuple[Transcript, ...]
    """The final ones."""
    interrupted: int | None
    """Sample of the room's stream at which the interruption's sound began, where one was made."""
    began: float
    """When sample 0 was recorded, in seconds of the loop's clock."""
    cpu_s: float
    """Seconds of processor time that all threads used."""


@dataclass(frozen=True, slots=True)
class Studio:
    """What takes are made with."""

    engines: Engines
    plain: Llm
    """The language model without its draft."""
    config: Config

    def take(self, mode: Mode, clip: Clip, replay: Sequence[TurnEvent] | None = None) -> Take:
        """Let a session hear `clip`.

        `replay` are the decisions of another take. A clip's interruption is made while the reply
        plays, which then plays to its end; otherwise only its first moments take their time.
        """
        return anyio.run(self._take, mode, clip, replay)

    def whole(self, clip: Clip) -> str:
        """What the recogniser makes of `clip` when it hears all of it at once."""
        asr = self.engines.asr
        limit = round(asr.max_window_s * SPEECH_RATE)
        parts = [clip.pcm[at : at + limit] for at in range(0, len(clip.pcm), limit)]
        return " ".join(word.text for part in parts for word in asr.transcribe(AsrRequest(part)))

    async def _take(self, mode: Mode, clip: Clip, replay: Sequence[TurnEvent] | None) -> Take:
        turns = structs.replace(self.config.turns, **mode.endpoint)
        longest_s = min(turns.max_turn_s, len(clip.pcm) / SPEECH_RATE + PATIENCE_S)
        turns = structs.replace(turns, max_turn_s=longest_s)
        answers = structs.replace(self.config.llm, skills="none")  # the model, and no rule
        config = structs.replace(self.config, turns=turns, llm=answers)
        llm = self.engines.llm if mode.drafts else self.plain
        engines = replace(self.engines, llm=llm)
        engines.vad.reset()
        detector = Recorded(config.turns) if replay is None else Replayed(config.turns, replay)
        sound = clip.interruption
        room = Room(clip, more=sound is not None)
        speaker = (
            BriefSpeaker(SPEAKER_RATE, HEARD_S) if sound is None else NullSpeaker(SPEAKER_RATE)
        )
        traces: list[TurnTrace] = []
        finals: list[Transcript] = []
        made: list[int] = []

        def show(event: Event) -> None:
            match event:
                case TurnTrace():
                    traces.append(event)
                    room.expect_nothing()  # what was not answered cannot be interrupted
                case Transcript() if event.final:
                    finals.append(event)
                case Clause() if sound is not None and not made:
                    delay_s = sound.delay_ms / 1000 - sound.start / SPEECH_RATE
                    made.append(room.play(sound.pcm, delay_s))
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
            made[0] if made else None,
            room.recorded(0),
            time.process_time() - used,
        )
