"""A speaker that remembers, and replies to play: what tests of playing share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import numpy as np
from anyio.abc import TaskGroup
from hypothesis import strategies as st

from tests.support.clock import VirtualClock
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import fade_out, samples
from voiceloop.audio.playback import AUDIBLE, FADE_MS, Heard
from voiceloop.audio.player import Player
from voiceloop.types import Clause, Pcm, Span, SpeechChunk, SpokenWord

RATE = 8_000
FADE = samples(FADE_MS, RATE)
WORD = RATE // 4
"""Samples of a word."""


def virtually(main: Callable[[], Awaitable[None]]) -> None:
    """Run `main` on a virtual clock of its own; for properties, which run many."""
    VirtualClock().run(main)


class RecordingSpeaker(NullSpeaker):
    """Remembers every sample that sounded, and when."""

    def __init__(self, rate: int = RATE) -> None:
        super().__init__(rate)
        self.times = np.zeros(0)
        self.pcm = np.zeros(0, np.float32)

    def write(self, pcm: Pcm) -> float:
        due = super().write(pcm)
        self.times = np.concatenate((self.times, due + np.arange(len(pcm)) / self.rate))
        self.pcm = np.concatenate((self.pcm, pcm))
        return due

    def cut(self, fade: int) -> int:
        dropped = super().cut(fade)
        left = len(self.pcm) - dropped
        fading = min(fade, int(np.sum(self.times[:left] > anyio.current_time() - 1e-9)))
        self.times, self.pcm = self.times[:left], fade_out(self.pcm[:left], fading)
        return dropped


def reply(turn: int, words: int, *, lead: int = 0, size: int = 500) -> list[SpeechChunk]:
    """One clause of loud words of two tokens each, after `lead` inaudible samples."""
    draw = np.random.default_rng(words)
    loud = draw.choice((-1, 1), words * WORD) * draw.uniform(0.2, 0.9, words * WORD)
    pcm = np.concatenate((np.full(lead, AUDIBLE / 2), loud)).astype(np.float32)
    text = " ".join(f"w{number:02}" for number in range(words))
    spans = tuple(Span(4 * k, 4 * k + 3, 2 * (k + 1)) for k in range(words))
    clause = Clause(turn, 0, text, text, spans, last=True)
    ends = [lead + (k + 1) * WORD for k in range(words)]
    chunks: list[SpeechChunk] = []
    for start in range(0, len(pcm), size):
        end = min(start + size, len(pcm))
        ended = tuple(
            SpokenWord(at - WORD, at, k) for k, at in enumerate(ends) if start < at <= end
        )
        last = end == len(pcm)
        chunks.append(SpeechChunk(turn, clause, pcm[start:end], RATE, start, ended, last))
    return chunks


def content(chunks: list[SpeechChunk]) -> Pcm:
    return np.concatenate([chunk.pcm for chunk in chunks])


@asynccontextmanager
async def running(
    player: Player, note: Callable[[Clause], None] = lambda clause: None
) -> AsyncGenerator[TaskGroup]:
    """The player at work, with a group for what goes on beside it; all ends with the block."""

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(player.run, note)
        yield tasks
        tasks.cancel_scope.cancel()


async def play_all(player: Player, chunks: list[SpeechChunk]) -> Heard:
    for chunk in chunks:
        await player.play(chunk)
    return await player.drain()


@dataclass(frozen=True)
class Act:
    at: float
    what: str


acts = st.lists(
    st.builds(Act, st.floats(0, 1.2), st.sampled_from(["pause", "resume", "resume", "stop"])),
    max_size=6,
).map(lambda made: sorted(made, key=lambda act: act.at))
