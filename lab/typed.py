"""Holds talks in which everything is typed, for programs of the lab, and saves what they find.

Each talk has a session of its own. The microphone of the session is silent, and the speaker
discards its sound at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import anyio
from msgspec.structs import replace

from voiceloop.assembly.loading import open_engines
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bench.record import Progress
from voiceloop.engines import Engines
from voiceloop.outputs import part_beside
from voiceloop.process import configure, settled
from voiceloop.session import Session
from voiceloop.settings.config import Config, TtsConfig
from voiceloop.settings.flags import Command
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.skills import Skills
from voiceloop.types import AudioFrame, Event, TokenBurst, ToolCall, TurnTrace

CLOCK = datetime(2026, 11, 26, 15, 42)
"""The time that the clock of a session shows when it begins."""
SPEAKER_RATE = 24_000
FRAME_S = 0.1
"""Seconds between two silent frames of the microphone."""
Talk = TypeVar("Talk")


class SilentMicrophone:
    """A microphone that hears silence until `end` is called; implements `devices.Microphone`."""

    def __init__(self) -> None:
        self.finished = False
        self._ended = anyio.Event()

    def end(self) -> None:
        """End the recording: `finished` becomes True with the next frame."""
        self._ended.set()

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of silence."""
        while True:
            with anyio.move_on_after(FRAME_S):
                await self._ended.wait()
                self.finished = True
            yield AudioFrame(silence(samples(10)), SPEECH_RATE, 0)

    def hold(self) -> None:
        """Do nothing: there is no sound to hold back."""

    def release(self) -> None:
        """Do nothing: no sound was held back."""


class TypedSession:
    """A session whose user types; its attributes tell what it showed in the last turn."""

    def __init__(
        self,
        engines: Engines,
        config: Config,
        skills: Skills,
        wall_clock: Callable[[], datetime],
        toolbox: Toolbox,
    ) -> None:
        """Prepare the session. `typing` runs it."""
        self.text = ""
        """The reply."""
        self.calls = list[ToolCall]()
        self.trace = TurnTrace(0)
        self.ended = anyio.Event()
        """Set when the session is over."""
        self.microphone = SilentMicrophone()
        self._turn_over = anyio.Event()
        self._session = Session(
            *(engines, self.microphone, NullSpeaker(SPEAKER_RATE, pace="max"), config, self._show),
            skills=skills,
            toolbox=toolbox,
            ends=True,
            wall_clock=wall_clock,
        )

    async def run(self) -> None:
        """Run the session until the microphone ends, or a goodbye was said."""
        await self._session.run()
        self.ended.set()

    async def say(self, text: str) -> None:
        """Type a text, and wait until the turn is over."""
        self.text, self.calls, self._turn_over = "", [], anyio.Event()
        self._session.write(text)
        await self._turn_over.wait()
        self.text = self.text.strip()

    def _show(self, event: Event) -> None:
        match event:
            case TokenBurst():
                self.text += event.text
            case ToolCall():
                before = [call for call in self.calls if call.call_id != event.call_id]
                self.calls = [*before, event]
            case TurnTrace():
                self.trace = event
                self._turn_over.set()
            case _:
                pass


@asynccontextmanager
async def typing(
    engines: Engines,
    config: Config,
    skills: Skills,
    wall_clock: Callable[[], datetime] = lambda: CLOCK,
    toolbox: Toolbox = NO_TOOLS,
) -> AsyncGenerator[TypedSession, None]:
    """Run a session in which everything is typed, until the context ends."""
    session = TypedSession(engines, config, skills, wall_clock, toolbox)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        await anyio.wait_all_tasks_blocked()
        yield session
        session.microphone.end()


def with_espeak(command: Command) -> Config:
    """Return the settings of a command. espeak speaks unless a flag names another engine, since the
    voice changes no answer."""
    named = command.origins.get("tts.engine") == "flag"
    return command.settings if named else replace(command.settings, tts=TtsConfig())


def hold_all(
    talks: Sequence[Talk],
    hold: Callable[[Talk, Engines, Config], Awaitable[Sequence[Any]]],
    command: Command,
) -> list[Any]:
    """Hold all talks in order with the engines that the flags of `command` name. Return their
    records."""
    config, found = with_espeak(command), list[Any]()
    configure(config.threads)

    async def hold_each() -> None:
        for number, talk in enumerate(talks, start=1):
            progress(f"{number} of {len(talks)}")
            found.extend(await hold(talk, engines, config))

    with Progress(sys.stderr) as progress, settled(open_engines(config)) as engines:
        anyio.run(hold_each)
    return found


def save(path: Path, record: object) -> None:
    """Write a record to a file as JSON, in place of the file if it exists."""
    with part_beside(path) as part:
        part.write(json.dumps(record, indent=1).encode() + b"\n")
    Path(part.name).replace(path)
