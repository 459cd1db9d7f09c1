"""A process that is killed: it speaks to its end, and prints each word when it has been heard.

    python tests/conversations/speaking.py STORE

Each line has the time of the machine's monotonic clock, the number of the turn, and the number of
words of its reply that were heard by then.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import numpy as np

from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from tests.support.user import Lexicon
from voiceloop.audio.devices import NullSpeaker
from voiceloop.conversations.condensing import Continuing
from voiceloop.conversations.keeping import kept
from voiceloop.engines import Engines
from voiceloop.session import Session
from voiceloop.settings.config import Config, LlmConfig
from voiceloop.types import AudioFrame, Event

RATE = 16_000
REPLY = tuple(f"word{number} " for number in range(25))
CONFIG = Config(llm=LlmConfig(target="large", skills="none"))
LOOK_S = 0.004
"""Seconds between two looks at what was heard."""


class Silence:
    """A microphone that never hears anything."""

    finished = False

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        size = RATE // 50
        pcm = np.zeros(size, np.float32)
        for number in range(10**6):
            await anyio.sleep(0.02)
            yield AudioFrame(pcm, RATE, number * size)

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass


async def watch(session: Session) -> None:
    """Print each word that has been heard."""
    turns = list[int]()
    before = (0, 0)
    while True:
        if exchange := session.sounding:
            if exchange.turn not in turns:
                turns.append(exchange.turn)
            now = (len(turns), exchange.words)
            if now != before and exchange.words:
                os.write(1, f"{time.monotonic()} {now[0]} {now[1]}\n".encode())
                before = now
        await anyio.sleep(LOOK_S)


async def speak(session: Session) -> None:
    """Have one reply after the other."""
    for number in range(10**6):
        if session.idle:
            session.write(f"Say something, number {number}")
        await anyio.sleep(0.05)


async def main(path: Path) -> None:
    def show(event: Event) -> None:
        pass

    with kept(path, "work", print) as found:
        engines = Engines(
            *(ScriptedVad(), ScriptedAsr(Lexicon()), InlineRunner()),
            *(ScriptedLlm({}, default=REPLY), InlineRunner(), ScriptedTts(), InlineRunner()),
        )
        goes_on = Continuing(found, engines, CONFIG, print)
        session = Session(
            *(engines, Silence(), NullSpeaker(RATE), CONFIG, show),
            full_duplex=True,
            **goes_on.options(),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(goes_on.keep, session)
            tasks.start_soon(watch, session)
            tasks.start_soon(speak, session)
            await session.run()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
