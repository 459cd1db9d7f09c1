"""Devices that are unplugged while a conversation goes on, and plugged in again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import numpy as np
import pytest

from tests.soundcards import HandCard
from voiceloop.audio.devices import AHEAD_S
from voiceloop.audio.frames import FRAME_MS, samples
from voiceloop.audio.portaudio import Callback, Kind
from voiceloop.audio.reconnecting import RETRY_S, Soundcard
from voiceloop.audio.soundcard import BACKLOG_S, STALL_S
from voiceloop.errors import DeviceError
from voiceloop.types import AudioFrame, Pcm

pytestmark = pytest.mark.virtual

RATE = 16_000
FRAME = samples(FRAME_MS)


class Desk:
    """A machine to which devices are connected and from which they are taken away."""

    def __init__(self) -> None:
        self.there = True
        self.rate = RATE
        """Rate of the devices that are opened from now on."""
        self.cards: dict[Kind, HandCard] = {}
        self.all: list[tuple[Kind, HandCard]] = []
        self.rates: list[int | None] = []
        self.notes: list[str] = []
        self.looks = 0
        """How often devices were looked for anew."""
        self.busy = anyio.Event()
        """An event for which the listener waits after each frame."""
        self.busy.set()

    def open(
        self,
        kind: Kind,
        name: str | None,
        callback: Callback,
        finished: Callable[[], None],
        rate: int | None = None,
    ) -> tuple[str, HandCard]:
        """Open the device of this kind, if there is one."""
        if not self.there:
            raise DeviceError(f"there is no {kind}", "connect one")
        card = HandCard(rate or self.rate)
        self.cards[kind] = card
        self.all.append((kind, card))
        self.rates.append(rate)
        return card.open(kind, name, callback, finished)

    def look(self) -> None:
        """Look for devices anew, for which none may be open."""
        assert {card.state for _, card in self.all} <= {"closed"}
        self.looks += 1

    def unplug(self, kind: Kind) -> None:
        """Take a device away."""
        self.there = False
        self.cards[kind].end()

    def played(self) -> Pcm:
        """All that the speakers have played but silence."""
        pcm = np.concatenate([card.pcm for kind, card in self.all if kind == "output"])
        return pcm[pcm != 0]


@asynccontextmanager
async def talking(desk: Desk) -> AsyncGenerator[tuple[Soundcard, list[AudioFrame]]]:
    """A card whose devices run as time passes, and the frames of its microphone."""
    frames: list[AudioFrame] = []
    own = Soundcard(None, None, desk.notes.append, opener=desk.open, begin_anew=desk.look)

    async def run() -> None:
        while True:
            await anyio.sleep(0.01)
            for kind, card in desk.cards.items():
                if card.state == "started":
                    count = samples(FRAME_MS, round(card.samplerate))
                    _ = (
                        card.play(count)
                        if kind == "output"
                        else card.record(np.ones(count, np.float32))
                    )

    async def listen() -> None:
        async for frame in own.microphone.frames():
            frames.append(frame)
            await desk.busy.wait()

    with own:
        own.start()
        async with anyio.create_task_group() as tasks:
            for job in (run, listen, own.keep):
                tasks.start_soon(job)
            yield own, frames
            tasks.cancel_scope.cancel()


def said(count: int) -> Pcm:
    """Samples that tell their own place, none of them silent."""
    return (np.arange(count) % 50_000 + 1).astype(np.float32)


async def replug(desk: Desk, rate: int) -> None:
    """Take the microphone away and connect another one, of this rate."""
    desk.unplug("input")
    desk.there, desk.rate = True, rate
    await anyio.sleep(STALL_S + 3 * RETRY_S)


async def speak(own: Soundcard, count: int) -> None:
    """Write what is said, as a reply does."""
    for block in np.split(said(count), count // 320):
        await own.speaker.room()
        own.speaker.write(block)


def in_step(frames: list[AudioFrame]) -> None:
    """The frames follow upon one another."""
    assert [frame.start for frame in frames] == list(range(0, len(frames) * FRAME, FRAME))


@pytest.mark.parametrize("kind", ["input", "output"])
async def test_whichever_device_is_lost_both_are_back_and_nothing_said_is_lost(kind: Kind) -> None:
    desk = Desk()
    async with talking(desk) as (own, frames), anyio.create_task_group() as tasks:
        tasks.start_soon(speak, own, 3 * RATE)
        await anyio.sleep(1.0)
        before = len(frames)
        desk.unplug(kind)
        await anyio.sleep(STALL_S + 20)
        assert len(desk.notes) == 1
        assert (
            "has stopped working: the conversation goes on when one is connected" in desk.notes[0]
        )
        assert 24 * 100 < len(frames) - before < 26 * 100, "time went on"
        assert not frames[-1].pcm.any()
        sounded = len(desk.played())
        desk.there = True
        await anyio.sleep(2 * RETRY_S)
        assert "is back: the conversation goes on" in desk.notes[1]
        assert frames[-1].pcm.any()
        await anyio.sleep(3.0)
        assert sounded < 2 * RATE
        assert np.array_equal(desk.played(), said(3 * RATE))
        in_step(frames)


async def test_the_speaker_is_opened_at_the_rate_with_which_the_conversation_began() -> None:
    desk = Desk()
    async with talking(desk):
        desk.unplug("output")
        desk.there = True
        await anyio.sleep(STALL_S + 3 * RETRY_S)
        assert desk.rates == [None, None, None, RATE]


async def test_what_is_cut_while_the_device_is_away_is_not_played_later() -> None:
    desk = Desk()
    async with talking(desk) as (own, _):
        own.speaker.write(np.full(4000, 0.5, np.float32))
        desk.unplug("output")
        await anyio.sleep(STALL_S + 1)
        with anyio.move_on_after(0.1) as waits:
            await own.speaker.room()
        assert waits.cancelled_caught
        own.speaker.write(np.full(4000, 0.5, np.float32))
        dropped = own.speaker.cut(80)
        assert 4000 <= dropped < 8000
        desk.there = True
        await anyio.sleep(2 * RETRY_S)
        assert len(desk.played()) <= round((AHEAD_S + 0.3) * RATE)
        assert own.speaker.due() <= anyio.current_time() + 0.1


async def test_who_was_busy_during_the_change_hears_the_new_device_at_its_rate() -> None:
    desk = Desk()
    async with talking(desk) as (_, frames):
        desk.busy = anyio.Event()
        await replug(desk, 3 * RATE)
        desk.busy.set()
        await anyio.sleep(0.1)
        before = len(frames)
        await anyio.sleep(1.0)
        assert len(frames) - before == pytest.approx(100, abs=2)
        in_step(frames)


async def test_an_overlay_of_the_lost_device_does_not_sound_on_the_next_one() -> None:
    desk = Desk()
    async with talking(desk) as (own, _):
        desk.unplug("output")
        own.speaker.overlay(np.full(RATE, 0.5, np.float32))
        await anyio.sleep(RETRY_S + 1)
        desk.there = True
        await anyio.sleep(3 * RETRY_S)
        assert len(desk.notes) == 2
        assert not len(desk.played())


async def test_flaws_are_those_of_all_devices_in_seconds() -> None:
    desk = Desk()
    async with talking(desk) as (own, _):
        assert own.flaws() == (0, 0)
        for rate in (3 * RATE, RATE):
            await anyio.sleep(0.1)
            card = desk.cards["input"]
            card.record(np.ones(round((BACKLOG_S + 2) * card.samplerate), np.float32))
            card.record(np.ones(10, np.float32), overflow=True)
            await anyio.sleep(0.1)
            await replug(desk, rate)
        lost_s, flaws = own.flaws()
        assert lost_s == pytest.approx(2 + 2, abs=0.1)
        assert flaws == 2
