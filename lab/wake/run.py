"""Measures wake words: how often they are found, how the words after them are heard, and the cost.

    python -m lab.wake.run --preset mini --wake.phrase "okay computer"
    python -m lab.wake.run --preset mini --wake.model okay_nabu

Seven synthetic voices say the wake word in the noise of a room, near and far away. They say it
alone, and with a question in the same breath. Then people talk for five minutes without it. The
configured models hear; the text of the replies is fixed. Time is virtual, except for the
processor's time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import anyio
import numpy as np

from models.train.questions import spoken
from models.train.voices import Voice
from tests.support.clock import VirtualClock
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedLlm, ScriptedTts, canonical
from voiceloop.assembly.loading import load_asr, load_vad, warm_asr
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE, Framer, dbfs, silence
from voiceloop.bench.clips import room
from voiceloop.bench.suites import SPEECH, read_folder
from voiceloop.cli.controls import configured_word, prepared
from voiceloop.engines import AsrRequest, Engines
from voiceloop.errors import ConfigError, VoiceloopError
from voiceloop.process import configure
from voiceloop.session import Session
from voiceloop.settings.config import Config
from voiceloop.settings.flags import Command, parse
from voiceloop.types import AudioFrame, Event, Pcm, Transcript
from voiceloop.wake.microphone import WakeMicrophone

VOICES = (
    *(Voice("flite", name) for name in ("kal", "kal16", "rms", "slt")),
    *(Voice("espeak", name) for name in ("en-us", "en-gb-x-rp", "en-gb-scotland")),
)
QUESTION = "what is the capital of France"
VOICE_DBFS = (-26.0, -36.0)
"""Levels of the voice: near, and about three times as far away."""
NOISE_DBFS = -62.0
"""Level of the noise of the room."""
LEAD_S, TAIL_S = 2.0, 3.0
"""Seconds of noise before and after the words."""
PEOPLE_S = 300.0
SHIFT_S = 0.37
"""Seconds that are cut from the beginning of each recording in every further round."""
APART_S = 1.0
"""Seconds of silence between two recordings."""


class Wake(Command, frozen=True, kw_only=True):
    """Measure wake words."""

    uses = (*Command.uses, "wake")


class PcmMicrophone:
    """A microphone that hears given samples, in virtual time."""

    finished = False

    def __init__(self, pcm: Pcm) -> None:
        self._pcm = pcm

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 10 ms."""
        frames = Framer().feed(self._pcm)
        for frame in frames:
            await anyio.sleep_until(frame.end / frame.rate)
            self.finished = frame is frames[-1]
            yield frame

    def hold(self) -> None:
        """Do nothing: this microphone is never held."""

    def release(self) -> None:
        """Do nothing: this microphone is never held."""


@dataclass
class Listened:
    """What the microphone and the session found in one stream."""

    woke: list[float] = field(default_factory=list[float])
    """Times at which the microphone woke, in seconds."""
    turns: dict[int, str] = field(default_factory=dict[int, str])
    """The words of each turn."""

    @property
    def heard(self) -> str:
        """Return the words of all turns."""
        return " | ".join(filter(None, self.turns.values()))


def listen(pcm: Pcm, engines: Engines, config: Config) -> Listened:
    """Hold a conversation with a user who says `pcm`, in virtual time."""
    found = Listened()

    def show(event: Event) -> None:
        if isinstance(event, Transcript):
            found.turns[event.turn] = event.text

    def changed(awake: bool) -> None:
        if awake:
            found.woke.append(round(anyio.current_time(), 2))

    async def main() -> None:
        configured = configured_word(config)
        assert configured is not None, "the command line has one"
        word, used = prepared(configured, engines, config)
        wake = WakeMicrophone(PcmMicrophone(pcm), word, config.wake.open_s, changed)
        session = Session(used, wake, NullSpeaker(SPEECH_RATE), config, show, full_duplex=True)
        wake.busy = lambda: not session.idle
        await session.run()

    VirtualClock().run(main)
    return found


def said(text: str, voice: Voice, voice_dbfs: float) -> Pcm:
    """Speak `text` at the level `voice_dbfs` in the noise of a room, which begins before and ends
    after it."""
    pcm = spoken(text, voice) if text else silence(0)
    voiced = pcm[np.abs(pcm) > 0.01 * np.abs(pcm).max(initial=0)]
    gain = np.float32(10 ** ((voice_dbfs - dbfs(voiced)) / 20))
    lead, tail = (silence(round(seconds * SPEECH_RATE)) for seconds in (LEAD_S, TAIL_S))
    whole = np.concatenate((lead, gain * pcm, tail))
    return whole + room(np.random.default_rng(0), len(whole), NOISE_DBFS)


def people(folder: Path, seconds: float = PEOPLE_S) -> Pcm:
    """Return at least `seconds` seconds of people's speech. In every further round, each recording
    begins later, so that another word follows the silence."""
    clips, pieces, length, number = read_folder(folder), list[Pcm](), 0, 0
    while length < seconds * SPEECH_RATE:
        shift, which = divmod(number, len(clips))
        begin = round(shift * SHIFT_S * SPEECH_RATE)
        piece = clips[which].pcm[begin:]
        if len(piece) > SPEECH_RATE:
            pieces += [piece, silence(round(APART_S * SPEECH_RATE))]
            length += len(piece)
        number += 1
    return np.concatenate(pieces)


def hits(engines: Engines, config: Config, name: str) -> None:
    """Print how often the wake word is found. For each wrong transcript, also print the words that
    were heard with the wake word and without it."""
    for text, meant in ((name, ""), (f"{name} {QUESTION}", QUESTION)):
        for level in VOICE_DBFS:
            found = [listen(said(text, voice, level), engines, config) for voice in VOICES]
            woke = sum(len(one.woke) == 1 for one in found)
            print(f'"{text}" at {level:.0f} dBFS: found {woke} of {len(found)}')
            for voice, one in zip(VOICES, found, strict=True):
                if canonical(one.heard) != canonical(meant):
                    alone = recognised(engines, said(meant, voice, level))
                    print(f"    {voice.name:<16} heard '{one.heard}', without it '{alone}'")


def recognised(engines: Engines, pcm: Pcm) -> str:
    """Return what the recogniser hears in `pcm`."""
    return " ".join(word.text for word in engines.asr.transcribe(AsrRequest(pcm)))


def false_alarms(engines: Engines, config: Config, folder: Path) -> None:
    """Print how often people's speech and noise wake the microphone, and the share of a core that
    this takes."""
    noise = room(np.random.default_rng(0), 60 * SPEECH_RATE, NOISE_DBFS)
    for what, pcm in (("people", people(folder)), ("noise", noise)):
        seconds, begun = len(pcm) / SPEECH_RATE, process_time()
        found = listen(pcm, engines, config)
        share = (process_time() - begun) / seconds
        print(f"{seconds:.0f} s of {what}: woke {len(found.woke)} times, {share:.1%} of a core")


def main(argv: Sequence[str]) -> int:
    """Run the command line, and return the exit status."""
    try:
        command = parse({"run": Wake}, ["run", *argv])
        if not isinstance(command, Wake):
            print(__doc__)
            return 0
        config = command.settings
        word = configured_word(config)
        if word is None:
            raise ConfigError("there is no wake word", "give --wake.phrase or --wake.model")
        configure(config.threads)
        asr, runners = warm_asr(load_asr(config)), [InlineRunner() for _ in range(3)]
        llm, tts = ScriptedLlm({}, burst_cost=0.0), ScriptedTts(cost=0.0)
        engines = Engines(load_vad(config), asr, runners[0], llm, runners[1], tts, runners[2])
    except VoiceloopError as error:
        print(f"{error.message}\nhint: {error.hint}", file=sys.stderr)
        return 2
    hits(engines, config, word.name)
    if folder := os.environ.get(SPEECH):
        false_alarms(engines, config, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
