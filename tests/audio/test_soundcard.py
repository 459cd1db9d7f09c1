"""Live microphone and speaker on a card that is driven by hand; tests/card has a real one.

The speaker runs on a virtual clock. The microphone needs an asyncio loop, and no time passes on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.soundcards import HandCard
from tests.sounds import sizes
from tests.speakers import Act, acts, play_all, reply, running, virtually
from voiceloop.audio.devices import AHEAD_S
from voiceloop.audio.frames import FRAME_MS, samples
from voiceloop.audio.player import Player
from voiceloop.audio.soundcard import (
    STALL_S,
    TAIL_S,
    SoundcardMicrophone,
    SoundcardSpeaker,
)
from voiceloop.errors import DeviceError
from voiceloop.trace.record import Recorder
from voiceloop.types import AudioFrame, Pcm

pytestmark = pytest.mark.virtual

RATE = 16_000
FRAME = samples(FRAME_MS)


def numbered(start: int, count: int) -> Pcm:
    """Samples that tell their own index, none of them silent."""
    return np.arange(start + 1, start + count + 1, dtype=np.float32)


# The speaker


@asynccontextmanager
async def playing(card: HandCard, frames: int = 160) -> AsyncGenerator[SoundcardSpeaker]:
    """A speaker whose card plays as time passes."""
    async with anyio.create_task_group() as tasks:
        with SoundcardSpeaker(opener=card.open) as speaker:
            speaker.start()
            tasks.start_soon(card.run, frames)
            await anyio.sleep(0.1)
            yield speaker


script = st.lists(
    st.tuples(st.floats(0, 0.2), st.sampled_from(["write", "write", "cut"]), st.integers(0, 900)),
    max_size=10,
)


@settings(max_examples=40)
@given(script, st.integers(60, 500), st.sampled_from([1, 2]))
def test_every_sample_is_played_once_when_it_was_said_to_be_or_counted_as_cut(
    steps: list[tuple[float, str, int]], frames: int, channels: int
):
    async def main() -> None:
        card = HandCard(RATE, channels=channels)
        async with playing(card, frames) as speaker:
            at, pcm, faded = np.zeros(0), numbered(0, 0), np.zeros(0, bool)
            written = 0
            for wait, what, count in steps:
                await anyio.sleep(wait)
                if what == "write":
                    due, promised = speaker.due(), speaker.write(numbered(written, count))
                    assert promised == pytest.approx(due, abs=1e-6)
                    at = np.append(at, promised + np.arange(count) / RATE)
                    pcm = np.append(pcm, numbered(written, count))
                    faded = np.append(faded, np.zeros(count, bool))
                    written += count
                else:
                    kept = len(pcm) - speaker.cut(count)
                    at, pcm, faded = at[:kept], pcm[:kept], faded[:kept]
                    faded[max(0, kept - count) :] = True
            await anyio.sleep(1.5)
            card.end()
        begun = card.times[0]
        expected, fades = np.zeros(len(card.pcm)), np.zeros(len(card.pcm), bool)
        places = np.round((at - begun) * RATE).astype(int)
        assert len(set(places)) == len(places), "two samples were promised the same moment"
        expected[places], fades[places] = pcm, faded
        assert np.array_equal(card.pcm[~fades], expected[~fades])
        assert np.all(np.abs(card.pcm[fades]) <= expected[fades])

    virtually(main)


@settings(max_examples=20)
@given(acts, st.integers(60, 500), st.integers(0, 4))
def test_what_counts_as_heard_has_sounded(acting: list[Act], size: int, jitter_ms: int):
    async def main() -> None:
        card, recorder = HandCard(RATE), Recorder(1)
        draw = np.random.default_rng(size)

        async def hurry() -> None:
            # Drivers tell the time in steps; that must not look like sound that is late.
            while card.state == "started":
                card.latency = 0.04 + draw.uniform(0, jitter_ms) / 1000
                await anyio.sleep(0.007)

        async with playing(card) as speaker, anyio.create_task_group() as tasks:
            tasks.start_soon(hurry)
            player = Player(speaker)
            async with running(player) as group:
                begun = anyio.current_time()
                player.begin(1, recorder)
                player.open()
                group.start_soon(play_all, player, reply(1, 3, size=size))
                for act in acting:
                    await anyio.sleep_until(begun + act.at)
                    getattr(player, act.what)()
                await anyio.sleep(1.5)
                heard = player.stop()
            await anyio.sleep(0.2)
            card.end()
        fades = 2 * len(acting)  # each begins or ends with a zero
        sounded = np.count_nonzero(card.pcm)
        assert heard.samples - fades - 2 <= sounded <= heard.samples
        assert not recorder.trace("done").counters.get("underruns")

    virtually(main)


@given(sizes, st.integers(0, 400), st.integers(0, 400))
def test_an_overlay_is_added_and_moves_nothing(frames: list[int], written: int, laid: int) -> None:
    card = HandCard(RATE)
    with SoundcardSpeaker(opener=card.open) as speaker:

        async def main() -> None:
            speaker.start()
            due = speaker.due()
            speaker.overlay(np.full(laid, 0.25, np.float32))
            assert speaker.due() == due
            if written:
                assert speaker.write(np.full(written, 0.5, np.float32)) == due
            played = np.concatenate([card.play(count) for count in (*frames, 800)])
            places = np.arange(len(played))
            assert np.array_equal(played, 0.5 * (places < written) + 0.25 * (places < laid))
            assert np.array_equal(speaker.taken(), 0.5 * (places < written))

        virtually(main)


async def test_a_device_that_dropped_out_is_later_from_then_on():
    card = HandCard(RATE)
    with SoundcardSpeaker(opener=card.open) as speaker:
        card.play(160)
        first = speaker.write(numbered(0, 480))
        await anyio.sleep(0.01)
        card.play(160)
        await anyio.sleep(0.5)
        card.play(160, underflow=True)
        later = speaker.write(numbered(480, 160))
        assert later == pytest.approx(first + 480 / RATE + 0.5 - 0.01, abs=1e-6)
        assert (speaker.underflows, speaker.gaps) == (1, 1)
        card.play(640)
        card.play(160, underflow=True)
        assert (speaker.underflows, speaker.gaps) == (1, 2), "nothing was waiting"


async def test_there_is_room_while_less_than_ahead_waits():
    async with playing(HandCard(RATE)) as speaker:
        begun = anyio.current_time()
        await speaker.room()
        assert anyio.current_time() == begun
        speaker.write(numbered(0, 8000))
        await speaker.room()
        waited = anyio.current_time() - begun
        assert 0.5 - AHEAD_S - 0.01 <= waited <= 0.5 - AHEAD_S + 0.02


@pytest.mark.parametrize("kind", [SoundcardMicrophone, SoundcardSpeaker])
def test_a_device_is_given_back(kind: type[SoundcardMicrophone | SoundcardSpeaker]):
    card = HandCard(RATE)
    with kind(opener=card.open) as device:
        assert card.state == "open"
        device.start()
        assert card.state == "started"
    assert card.state == "closed"


def test_a_device_that_cannot_start_is_an_error():
    class Broken(HandCard):
        def start(self) -> None:
            raise RuntimeError("no")

    with SoundcardSpeaker("Loud", opener=Broken().open) as speaker:
        with pytest.raises(DeviceError, match="'Loud'"):
            speaker.start()


async def test_a_speaker_that_is_unplugged_is_an_error():
    card = HandCard(RATE)
    with pytest.raises(DeviceError, match="speaker 'Loud' has stopped") as raised:
        with SoundcardSpeaker("Loud", opener=card.open) as speaker:
            await speaker.room()
            card.end()
            await speaker.room()
    assert "--output" in raised.value.hint


async def test_a_speaker_that_asks_for_nothing_is_an_error_and_not_a_hang():
    with SoundcardSpeaker(opener=HandCard(RATE).open) as speaker:
        begun = anyio.current_time()
        with pytest.raises(DeviceError, match="has stopped working"):
            while anyio.current_time() < begun + 60:
                await speaker.room()
                speaker.write(numbered(0, 320))
        assert anyio.current_time() - begun < 2 * STALL_S


# The microphone


def really(main: Callable[[], Awaitable[None]]) -> None:
    """Run `main` on asyncio, as the product does."""
    anyio.run(main)


async def settle() -> None:
    """Let the loop run until a callback has been taken notice of."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def hearing(card: HandCard) -> AsyncGenerator[tuple[SoundcardMicrophone, list[AudioFrame]]]:
    """A microphone and the frames that come of it."""
    frames: list[AudioFrame] = []

    async def listen() -> None:
        async for frame in microphone.frames():
            frames.append(frame)  # noqa: PERF401  # the list is read meanwhile

    with SoundcardMicrophone(opener=card.open) as microphone:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await settle()
            yield microphone, frames
            await settle()
            tasks.cancel_scope.cancel()


def joined(frames: list[AudioFrame]) -> Pcm:
    """The audio of frames that follow upon one another."""
    assert all(frame.rate == RATE and len(frame.pcm) == FRAME for frame in frames)
    assert [frame.start for frame in frames] == list(range(0, len(frames) * FRAME, FRAME))
    return np.concatenate([numbered(0, 0), *(frame.pcm for frame in frames)])


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 50_000), st.booleans()), max_size=12))
def test_frames_stay_in_step_with_time_whatever_is_lost(blocks: list[tuple[int, bool]]):
    async def main() -> None:
        card, recorded = HandCard(RATE), 0
        async with hearing(card) as (microphone, frames):
            for count, busy in blocks:
                card.record(numbered(recorded, count))
                recorded += count
                if not busy:
                    await settle()
        heard = joined(frames)
        assert len(heard) == recorded // FRAME * FRAME
        there = heard != 0
        assert np.array_equal(heard[there], numbered(0, len(heard))[there])
        rest = recorded % FRAME
        lost = round(microphone.lost_s * RATE)
        assert lost - rest <= np.sum(~there) <= lost
        if not any(busy for _, busy in blocks):
            assert not lost

    really(main)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["record", "hold", "release"]), st.integers(1, 9000)), max_size=16
    )
)
def test_nothing_is_heard_from_hold_until_the_tail_after_release(steps: list[tuple[str, int]]):
    async def main() -> None:
        card, recorded, deaf_from = HandCard(RATE), 0, None
        tail = round((TAIL_S + card.latency) * RATE)
        deaf: list[tuple[int, float]] = []
        async with hearing(card) as (microphone, frames):
            for what, count in steps:
                if what == "record":
                    card.record(numbered(recorded, count))
                    recorded += count
                    await settle()
                elif what == "hold":
                    microphone.hold()
                    deaf_from = recorded if deaf_from is None else deaf_from
                else:
                    microphone.release()
                    begin = recorded if deaf_from is None else deaf_from
                    deaf.append((begin, recorded + tail))
                    deaf_from = None
        if deaf_from is not None:
            deaf.append((deaf_from, np.inf))
        heard = joined(frames)
        indices = heard - 1
        assert np.all(np.diff(indices) > 0), "each sample once and in order"
        for begin, end in deaf:
            assert not np.any((indices >= begin) & (indices < end))
        audible = np.ones(recorded, bool)
        for begin, end in deaf:
            audible[begin : int(min(end, recorded))] = False
        assert len(heard) == np.sum(audible) // FRAME * FRAME, "and all else is"

    really(main)


def test_a_hold_takes_effect_before_the_next_frame():
    async def main() -> None:
        card, heard = HandCard(RATE), 0

        async def listen() -> None:
            nonlocal heard
            async for _ in microphone.frames():
                heard += 1
                if heard == 3:
                    microphone.hold()

        with SoundcardMicrophone(opener=card.open) as microphone:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                await settle()
                card.record(numbered(0, 20 * FRAME))
                await settle()
                tasks.cancel_scope.cancel()
        assert heard == 3

    really(main)


def test_what_was_recorded_before_anyone_listened_is_not_heard():
    async def main() -> None:
        card = HandCard(RATE)
        with SoundcardMicrophone(opener=card.open) as microphone:
            card.record(numbered(0, 5000))
            frames = microphone.frames()
            asyncio.get_running_loop().call_later(0.01, card.record, numbered(5000, FRAME))
            frame = await anext(frames)
            await frames.aclose()
        assert (frame.start, frame.pcm[0]) == (0, 5001)
        assert microphone.lost_s == 0

    really(main)


def test_overflows_of_the_device_are_counted():
    async def main() -> None:
        card = HandCard(RATE)
        async with hearing(card) as (microphone, _):
            card.record(numbered(0, 100))
            before = microphone.recorded_at(0)
            await anyio.sleep(0.5)
            for overflow in (True, False, True):
                card.record(numbered(0, 100), overflow=overflow)
            after = microphone.recorded_at(0)
        assert microphone.overflows == 2
        # What was lost is missing in the count of samples.
        assert before is not None
        assert after is not None
        assert after - before > 0.4

    really(main)


def test_a_microphone_that_is_unplugged_is_an_error():
    async def main() -> None:
        card = HandCard(RATE)
        with SoundcardMicrophone("Desk", opener=card.open) as microphone:
            frames = microphone.frames()
            loop = asyncio.get_running_loop()
            loop.call_later(0.01, card.end)
            with pytest.raises(DeviceError, match="microphone 'Desk' has stopped") as raised:
                with anyio.fail_after(STALL_S / 2):
                    await anext(frames)
        assert "--input" in raised.value.hint
        assert card.state == "closed"

    really(main)


def test_a_callback_after_the_end_disturbs_nobody():
    card = HandCard(RATE)

    async def main() -> None:
        async with hearing(card):
            card.record(numbered(0, 400))

    really(main)
    card.record(numbered(400, 400))
    card.end()
