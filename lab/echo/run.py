"""Measures conversations over a loudspeaker, whose echo the microphone hears.

    python -m lab.echo.run --preset mini
    python -m lab.echo.run --preset mini --scenes "+6 dB,all at once" --replies 10

A user interrupts each of the replies, in each scene of `lab/echo/room.py` and in a scene without an
echo. The configured models hear and speak; the text of the replies is fixed. Time is virtual, so
the figures are the same on each machine, except for the processor's time.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import process_time
from typing import Annotated

import anyio
import numpy as np
from msgspec.structs import replace

from lab.echo.room import NEAR_DBFS, SCENES, SILENT, Room, RoomCard, Scene, voice_level
from models.train.questions import spoken
from models.train.voices import Voice
from tests.support.clock import VirtualClock
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedLlm
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.assembly.loading import load_asr, load_tts, load_vad, warm_asr, warm_tts
from voiceloop.audio.devices import DcBlocker, FilteredMicrophone
from voiceloop.audio.echo import EchoFilter
from voiceloop.audio.frames import SPEECH_RATE, Resampler
from voiceloop.audio.reconnecting import Soundcard
from voiceloop.bench.record import word_errors
from voiceloop.bench.suites import SPEECH, read_folder
from voiceloop.engines import AsrRequest, Engines
from voiceloop.errors import VoiceloopError
from voiceloop.process import configure
from voiceloop.session import Session
from voiceloop.settings.config import Config
from voiceloop.settings.flags import Command, parse, written
from voiceloop.types import Clause, Event, FloorChange, Pcm, Transcript, TurnHeard, TurnTrace

REPLY = (
    "Well, that is a good question, and the answer takes a while. The river begins as a small "
    "spring in the hills, and it grows with every stream that joins it. Farmers use its water in "
    "the summer, and boats carry wood and grain down to the harbour. In winter the upper part "
    "freezes, so that people walk across it, and children skate until it is dark."
)
"""Text of every reply. It lasts longer than any wait before an interruption."""
QUESTIONS = (
    "What is the capital of France?",
    "How many ounces are in three pounds?",
    "Who wrote the story of the white whale?",
    "Why is the sky blue in the evening?",
    "Please tell me something about the moon.",
)
VOICES = (Voice("flite", "slt"), Voice("flite", "rms"), Voice("espeak", "en-us"))
LONGEST_S = 10.0
"""Length of the longest recording of a person that is used."""
OVER_S = (1.2, 3.0)
"""Minimum and maximum seconds for which a reply sounds before the user speaks."""
EVERY = (SILENT, *SCENES)
PATIENCE_S = 12.0
"""Maximum seconds to wait for a reply, or for the end of a turn."""
SETTLES_S = 1.0
"""Seconds after a clip in which events still count as effects of the clip."""
FIRST_S = 1.5
"""Seconds of silence before the first words of the user."""


class Echo(Command, frozen=True, kw_only=True):
    """Measure conversations on loudspeakers."""

    replies: Annotated[int, written("N")] = 40
    """Number of replies in each scene."""
    scenes: str = ""
    """Names of scenes, with commas between them; all without it."""
    out: Annotated[Path | None, written("E.json")] = None
    """Write all turns to this file."""


@dataclass
class Heard:
    """One clip of the user, and the result of it."""

    said: str
    """Words of the clip, as the recogniser hears them without an echo."""
    over_reply: bool
    at: float
    """When the clip began, in seconds of the virtual clock."""
    heard: str = ""
    """Words of the turns that began during the clip."""
    interrupted: bool = False


@dataclass
class Found:
    """The results of one scene."""

    scene: str
    clips: list[Heard] = field(default_factory=list[Heard])
    self_interruptions: list[float] = field(default_factory=list[float])
    """Times at which replies were interrupted although nobody spoke."""
    self_pauses: int = 0
    """Number of replies that were paused while nobody spoke, and went on."""
    echo_turns: list[str] = field(default_factory=list[str])
    """Times and words of turns in which nobody spoke."""
    cancelling_share: float = 0.0
    """Processor time of the canceller, divided by the length of the audio."""
    duplex: str = ""
    delay_ms: float | None = None

    @property
    def interruptions(self) -> tuple[int, int]:
        """How many clips over a reply interrupted it, and how many there were."""
        over = [clip for clip in self.clips if clip.over_reply]
        return sum(clip.interrupted for clip in over), len(over)

    def errors(self, *, over_reply: bool = True) -> float:
        """Return the share of words that were misheard in clips over replies, or without
        `over_reply` in the other clips."""
        chosen = [clip for clip in self.clips if clip.over_reply == over_reply]
        found = [word_errors(clip.said, clip.heard) for clip in chosen]
        return sum(one.errors for one in found) / max(1, sum(one.words for one in found))


def clips_of(folder: Path | None, engines: Engines) -> list[tuple[str, Pcm]]:
    """Return the clips of the user as pairs of words and samples. The samples have the level of a
    voice in the room. The words are those that the recogniser hears without an echo."""
    found = [spoken(text, VOICES[number % len(VOICES)]) for number, text in enumerate(QUESTIONS)]
    if folder is not None:
        found += [clip.pcm for clip in read_folder(folder)]
    found = [pcm for pcm in found if len(pcm) <= LONGEST_S * SPEECH_RATE]
    level = 10 ** (NEAR_DBFS / 20)
    voiced = [(pcm * level / voice_level(pcm)).astype(np.float32) for pcm in found]
    return [(_words(engines, pcm), pcm) for pcm in voiced]


def _words(engines: Engines, pcm: Pcm) -> str:
    assert isinstance(engines.asr, WindowedAsr), "it can decode a clip at once"
    return " ".join(word.text.strip() for word in engines.asr.transcribe(AsrRequest(pcm)))


def spoken_reply(engines: Engines) -> Pcm:
    """Return the reply as the loudspeaker plays it, at 16 kHz."""
    resampler = Resampler(engines.tts.rate, SPEECH_RATE)
    clause = Clause(0, 0, REPLY, REPLY, last=True)
    chunks = [chunk.pcm for chunk in engines.tts.synthesize(clause) if chunk is not None]
    return np.concatenate([*map(resampler.feed, chunks), resampler.flush()])


class Talk:
    """One conversation in a room, and a record of its events."""

    def __init__(self, scene: Scene, card: RoomCard, clips: Sequence[tuple[str, Pcm]]) -> None:
        self.found = Found(scene.name)
        self._card, self._clips = card, clips
        self._begun: dict[int, float] = {}
        """When each turn began."""
        self._turns: dict[int, str] = {}
        """Words of each turn."""
        self._own: dict[int, Heard | None] = {}
        """The clip during which each turn began; None if nobody spoke."""
        self._present: Heard | None = None
        """Clip that is being said or ended within the last `SETTLES_S`; None otherwise."""
        self._sounding = anyio.Event()
        self._over = anyio.Event()

    def show(self, event: Event) -> None:
        """Record an event of the session."""
        match event:
            case TurnHeard(over=False):
                self._own.setdefault(event.turn, self._present)
                self._begun.setdefault(event.turn, anyio.current_time())
            case Transcript():
                self._turns[event.turn] = event.text
            case Clause():
                self._sounding.set()
            case FloorChange():
                self._note(event)
            case TurnTrace():
                self._over.set()
            case _:
                pass

    def _note(self, event: FloorChange) -> None:
        if self._present is not None:
            self._present.interrupted |= event.change == "interrupted"
        elif event.change == "interrupted":
            self.found.self_interruptions.append(round(anyio.current_time(), 2))
        elif event.change == "paused":
            self.found.self_pauses += 1

    async def hold(self, replies: int, seed: int) -> None:
        """Speak once, and then over each of the replies."""
        chance = random.Random(seed)
        await anyio.sleep(FIRST_S)
        await self._say(0, over_reply=False)
        for number in range(1, replies + 1):
            with anyio.move_on_after(PATIENCE_S):
                await self._sounding.wait()
            await anyio.sleep(chance.uniform(*OVER_S))
            await self._say(number, over_reply=True)
        await anyio.sleep(PATIENCE_S)
        for turn, clip in self._own.items():
            words = self._turns.get(turn, "")
            if clip is not None:
                clip.heard = f"{clip.heard} {words}".strip()
            elif words:
                self.found.echo_turns.append(f"{self._begun[turn]:.1f} s: {words}")

    async def _say(self, number: int, *, over_reply: bool) -> None:
        text, pcm = self._clips[number % len(self._clips)]
        self._present = Heard(text, over_reply, anyio.current_time())
        self.found.clips.append(self._present)
        self._sounding = anyio.Event()
        self._card.say(pcm)
        await anyio.sleep(len(pcm) / SPEECH_RATE)
        await anyio.sleep(SETTLES_S)
        self._present = None


def play(
    scene: Scene, engines: Engines, config: Config, clips: Sequence[tuple[str, Pcm]], replies: int
) -> Found:
    """Hold one conversation in a scene, and return the results."""

    async def main() -> Talk:
        card = RoomCard(Room(scene, voice))
        talk = Talk(scene, card, clips)
        with Soundcard(None, None, opener=card.open) as devices:
            microphone, speaker = devices.microphone, devices.speaker
            echo_filter = EchoFilter(microphone, speaker)
            heard = FilteredMicrophone(microphone, DcBlocker(), echo_filter)
            cancel, spent = echo_filter.canceller.cancel, [0.0, 0]

            def timed(recorded: Pcm) -> Pcm:
                begun = process_time()
                clean = cancel(recorded)
                spent[0] += process_time() - begun
                spent[1] += len(recorded)
                return clean

            echo_filter.canceller.cancel = timed  # type: ignore[method-assign]
            session = Session(engines, heard, speaker, config, talk.show, full_duplex=True)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(card.run)
                tasks.start_soon(session.run)
                await talk.hold(replies, seed=len(scene.name))
                tasks.cancel_scope.cancel()
            talk.found.duplex = echo_filter.canceller.duplex.name.lower()
            talk.found.delay_ms = echo_filter.canceller.alignment.delay_ms
            talk.found.cancelling_share = spent[0] / (spent[1] / SPEECH_RATE)
        return talk

    voice = spoken_reply(engines)
    return VirtualClock().run(main).found


def engines_of(config: Config) -> Engines:
    """Return engines that take no virtual time. The language model always answers with `REPLY`."""
    words = [f"{word} " for word in REPLY.split()]
    llm = ScriptedLlm({}, burst_cost=0.0, default=words)
    asr, tts = warm_asr(load_asr(config)), warm_tts(load_tts(config))
    runners = [InlineRunner() for _ in range(3)]
    return Engines(load_vad(config), asr, runners[0], llm, runners[1], tts, runners[2])


def line(found: Found) -> str:
    """Return the results of one scene as a line of text."""
    done, asked = found.interruptions
    parts = (
        f"{found.scene:<32} interrupted {done:2}/{asked:2}",
        f"by itself {len(found.self_interruptions)} (paused {found.self_pauses})",
        f"echo turns {len(found.echo_turns)}",
        f"words wrong {found.errors():6.1%}",
        f"cpu {found.cancelling_share:5.2%}",
        f"{found.duplex} {found.delay_ms and round(found.delay_ms)} ms",
    )
    return "   ".join(parts)


def main(argv: Sequence[str]) -> int:
    """Run the command line, and return the exit status."""
    try:
        command = parse({"run": Echo}, ["run", *argv])
        if not isinstance(command, Echo):
            print(__doc__)
            return 0
        configure(command.settings.threads)
        engines = engines_of(command.settings)
    except VoiceloopError as error:
        print(f"{error.message}\nhint: {error.hint}", file=sys.stderr)
        return 2
    folder = os.environ.get(SPEECH)
    clips = clips_of(Path(folder) if folder else None, engines)
    # A skill would answer some questions briefly, and there would be no reply to interrupt.
    config = replace(command.settings, llm=replace(command.settings.llm, skills="none"))
    chosen = command.scenes.split(",") if command.scenes else [scene.name for scene in EVERY]
    every = list[Found]()
    for scene in EVERY:
        if scene.name in chosen:
            every.append(play(scene, engines, config, clips, command.replies))
            print(line(every[-1]), flush=True)
    if command.out:
        command.out.write_text(json.dumps([asdict(found) for found in every], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
