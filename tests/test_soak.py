"""A long conversation with real models as time passes: memory stays, and nothing is left behind."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from lab.load.measure import memory_mb
from voiceloop.assembly.loading import open_engines
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import FRAME_MS, SPEECH_RATE, samples, silence
from voiceloop.bench.suites import build
from voiceloop.session import Session
from voiceloop.settings.config import Config
from voiceloop.types import AudioFrame, Event, Pcm, TurnTrace

pytestmark = pytest.mark.real

MINUTES = 20
EVERY_S = 10.0
"""Between two looks at the memory."""
BETWEEN_S = (0.4, 5.0)
"""Silence after what was said: some of it is said into the answer."""
MOST_MB = 1.0
"""Growth in ten minutes, once caches are full."""


class Talkative:
    """A user who never stops; implements `devices.Microphone`."""

    finished = False

    def __init__(self, sounds: Sequence[Pcm], seconds: float) -> None:
        self._sounds, self._seconds = sounds, seconds
        self._rng = random.Random(0)

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        begun, size, position = anyio.current_time(), samples(FRAME_MS), 0
        waiting = silence(SPEECH_RATE)
        while position < self._seconds * SPEECH_RATE:
            if len(waiting) < size:
                pause = silence(round(self._rng.uniform(*BETWEEN_S) * SPEECH_RATE))
                waiting = np.concatenate((waiting, self._rng.choice(self._sounds), pause))
            await anyio.sleep_until(begun + (position + size) / SPEECH_RATE)
            yield AudioFrame(waiting[:size], SPEECH_RATE, position)
            waiting = waiting[size:]
            position += size
        self.finished = True
        while True:
            await anyio.sleep_until(begun + (position + size) / SPEECH_RATE)
            yield AudioFrame(silence(size), SPEECH_RATE, position)
            position += size

    def hold(self) -> None:
        """Nobody holds it: it is heard while replies sound."""

    def release(self) -> None:
        """See `hold`."""


def slope(held: Sequence[float]) -> float:
    """Growth of what was held in ten minutes (least squares)."""
    minutes = np.arange(len(held)) * EVERY_S / 60
    return 10 * float(np.polyfit(minutes, held, 1)[0])


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system tells no memory")
def test_twenty_minutes_leave_nothing_behind() -> None:
    outcomes: Counter[str] = Counter()
    held: list[float] = []

    def show(event: Event) -> None:
        if isinstance(event, TurnTrace):
            outcomes[event.outcome] += 1

    async def look() -> None:
        while True:
            held.append(memory_mb() or 0.0)
            await anyio.sleep(EVERY_S)

    async def talk() -> set[str]:
        config = Config()
        sounds = [clip.pcm for clip in build("starter", 60)]
        with open_engines(config) as engines:
            user = Talkative(sounds, 60 * MINUTES)
            session = Session(engines, user, NullSpeaker(24_000), config, show, full_duplex=True)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(look)
                await session.run()
                tasks.cancel_scope.cancel()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            return {task.get_name() for task in asyncio.all_tasks()}

    threads = set(threading.enumerate())
    tasks = anyio.run(talk)
    figures = f"{outcomes}, MB after half the time: {held[len(held) // 2 :: 6]}"
    print(figures)
    assert len(tasks) == 1, tasks
    assert set(threading.enumerate()) <= threads
    assert outcomes["done"] > 50 and outcomes["interrupted"] > 20 and not outcomes["failed"]
    assert slope(held[len(held) // 2 :]) <= MOST_MB, figures
