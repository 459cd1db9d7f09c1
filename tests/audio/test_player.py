"""The player on a virtual clock, exact to the microsecond."""

from __future__ import annotations

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.speakers import (
    FADE,
    RATE,
    WORD,
    Act,
    RecordingSpeaker,
    acts,
    content,
    play_all,
    reply,
    running,
    virtually,
)
from voiceloop.audio.devices import AHEAD_S
from voiceloop.audio.playback import AUDIBLE, Heard
from voiceloop.audio.player import Player
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.types import Clause, SpeechChunk

pytestmark = pytest.mark.virtual

# Player: one reply without interruption


async def test_a_reply_sounds_from_the_moment_its_gate_opens_without_a_gap():
    speaker, chunks, recorder = RecordingSpeaker(), reply(1, 3, lead=600), Recorder(1)
    player = Player(speaker)
    begun = anyio.current_time()
    async with running(player) as tasks:
        player.begin(1, recorder)
        tasks.start_soon(play_all, player, chunks)
        await anyio.sleep(0.5)
        assert not len(speaker.pcm), "the gate is shut"
        player.open()
        await anyio.sleep(5)
    assert np.array_equal(speaker.pcm, content(chunks))
    expected = begun + 0.5 + np.arange(len(speaker.pcm)) / RATE
    assert speaker.times == pytest.approx(expected, abs=1e-9)
    assert recorder.at(Mark.FIRST_SOUND) == pytest.approx(begun + 0.5 + 600 / RATE, abs=1e-9)
    assert recorder.at(Mark.SOUND_END) == pytest.approx(begun + 0.5 + 6600 / RATE, abs=1e-9)
    trace = recorder.trace("done")
    assert trace.counters == {}
    assert [(span.lane, span.start, span.end) for span in trace.spans] == [
        (Lane.SPEAKER, pytest.approx(begun + 0.5), pytest.approx(begun + 0.5 + 6600 / RATE))
    ]


async def test_drain_returns_when_the_last_sample_has_sounded():
    player, begun = Player(RecordingSpeaker()), anyio.current_time()
    async with running(player):
        player.begin(1, Recorder(1))
        player.open()
        heard = await play_all(player, reply(1, 4))
        assert anyio.current_time() - begun == pytest.approx(1.0, abs=1e-6)
        assert heard == Heard(1, ("w00", "w01", "w02", "w03"), 8, 4 * WORD, complete=True)


async def test_an_empty_reply_is_over_at_once_and_leaves_no_mark():
    player, recorder = Player(RecordingSpeaker()), Recorder(1)
    async with running(player):
        player.begin(1, recorder)
        assert await player.drain() == Heard(1, complete=True)
    assert recorder.trace("done").marks == {}


async def test_a_producer_waits_while_enough_is_queued():
    player, chunks, pushed = Player(RecordingSpeaker(), max_queued_s=0.5), reply(1, 8), []
    begun = anyio.current_time()

    async def produce() -> None:
        for chunk in chunks:
            await player.play(chunk)
            pushed.append(anyio.current_time() - begun)

    async with running(player) as tasks:
        player.begin(1, Recorder(1))
        tasks.start_soon(produce)
        await anyio.sleep(1)
        # Half a second is 8 chunks; one more may come when no more than that is queued.
        assert len(pushed) == 9
        player.open()
        await anyio.sleep(5)
        assert len(pushed) == len(chunks)
    for number, at in enumerate(pushed[9:], start=9):
        sounded = max(0.0, at - 1) + AHEAD_S + 0.02
        assert (number - 8) * 500 / RATE <= sounded + 1e-9


async def test_a_chunk_of_another_turn_is_dropped():
    speaker = RecordingSpeaker()
    player = Player(speaker)
    async with running(player):
        player.begin(2, Recorder(2))
        player.open()
        await player.play(reply(1, 1, size=WORD)[0])
        assert await player.drain() == Heard(2, complete=True)
    assert not len(speaker.pcm)


async def test_only_audible_gaps_count_as_underruns():
    speaker, recorder, chunks = RecordingSpeaker(), Recorder(1), reply(1, 3, size=WORD)
    player = Player(speaker)
    async with running(player):
        player.begin(1, recorder)
        player.open()
        await player.play(chunks[0])
        await anyio.sleep(0.25 - 0.001)  # in time, though nothing is queued any more
        await player.play(chunks[1])
        await anyio.sleep(0.25 + 0.1)
        await player.play(chunks[2])
        await player.drain()
    trace = recorder.trace("done")
    assert trace.counters == {"underruns": 1}
    assert [span.end - span.start for span in trace.spans] == pytest.approx([0.5, 0.25])


class Hurried(RecordingSpeaker):
    """On a real clock, time passes between one look at it and the next."""

    looks = 0

    def due(self) -> float:
        self.looks += 1
        return max(super().due(), anyio.current_time() + self.looks * 1e-5)


async def test_time_that_passes_while_audio_is_handed_over_is_no_underrun():
    speaker, recorder = Hurried(), Recorder(1)
    player = Player(speaker)
    async with running(player):
        player.begin(1, recorder)
        player.open()
        await play_all(player, reply(1, 4))
    trace = recorder.trace("done")
    assert trace.counters == {}
    assert len(trace.spans) == 1
    assert np.diff(speaker.times) == pytest.approx(1 / RATE)


async def test_clauses_are_told_as_they_begin_to_sound():
    told: list[tuple[int, float]] = []
    begun = anyio.current_time()
    player = Player(RecordingSpeaker())

    def note(clause: Clause) -> None:
        told.append((clause.index, anyio.current_time() - begun))

    (first,) = reply(1, 1, size=WORD)
    second = SpeechChunk(1, Clause(1, 1, "more", "more"), first.pcm, RATE, 0, last=True)
    async with running(player, note):
        player.begin(1, Recorder(1))
        player.open()
        await play_all(player, [first, second])
    assert [index for index, _ in told] == [0, 1]
    assert told[0][1] == 0
    assert 0.25 - AHEAD_S - 0.02 <= told[1][1] <= 0.25


# Player: interruptions


async def test_a_reply_stopped_before_it_is_audible_leaves_no_first_sound():
    speaker, recorder = RecordingSpeaker(), Recorder(1)
    player = Player(speaker)
    async with running(player) as tasks:
        player.begin(1, recorder)
        player.open()
        tasks.start_soon(play_all, player, reply(1, 2, lead=400))
        await anyio.sleep(0.02)
        assert recorder.at(Mark.FIRST_SOUND) is not None, "it has been handed over already"
        heard = player.stop()
        assert recorder.at(Mark.FIRST_SOUND) is None
    assert (heard.words, heard.tokens, heard.samples) == ((), 0, 160 + FADE)


async def test_what_has_been_heard_is_known_while_it_sounds():
    player = Player(RecordingSpeaker())
    async with running(player) as tasks:
        player.begin(1, Recorder(1))
        player.open()
        tasks.start_soon(play_all, player, reply(1, 4))
        for number in range(1, 5):
            await anyio.sleep(0.25 - 1 / RATE)
            assert len(player.heard().words) == number - 1
            await anyio.sleep(1 / RATE)
            assert len(player.heard().words) == number


async def test_the_next_reply_begins_right_after_the_fade_of_the_last():
    speaker = RecordingSpeaker()
    player, begun = Player(speaker), anyio.current_time()
    recorders = Recorder(1), Recorder(2)
    async with running(player) as tasks:
        player.begin(1, recorders[0])
        player.open()
        tasks.start_soon(play_all, player, reply(1, 4))
        await anyio.sleep(0.3)
        player.begin(2, recorders[1])
        player.open()
        await play_all(player, reply(2, 1))
    assert recorders[0].at(Mark.SOUND_END) == pytest.approx(begun + 0.3 + FADE / RATE)
    # The player may be waiting for room when the old reply is cut; that takes a block at most.
    first = recorders[1].at(Mark.FIRST_SOUND)
    assert first is not None
    assert FADE / RATE <= first - begun - 0.3 <= FADE / RATE + 0.02
    assert np.array_equal(speaker.pcm[-WORD:], content(reply(2, 1)))


@settings(max_examples=60)
@given(
    acts,
    st.lists(st.sampled_from([0.0, 0.01, 0.3]), min_size=1, max_size=5),
    st.integers(100, 3000),
    st.floats(0, 0.5),
    st.integers(0, 400),
)
def test_any_interruption_loses_and_doubles_no_sample_and_knows_what_was_heard(
    script: list[Act], delays: list[float], size: int, opened: float, lead: int
):
    """Any chunks at any time, and pause, resume and stop at any instant."""

    async def main() -> None:
        speaker, recorder = RecordingSpeaker(), Recorder(1)
        player, begun = Player(speaker), anyio.current_time()
        chunks = reply(1, 3, lead=lead, size=size)
        silent: list[tuple[float, float]] = [(-1, opened)]
        """When nothing may sound: from, to."""
        heard: list[Heard] = []
        stopped = False

        async def produce() -> None:
            for number, chunk in enumerate(chunks):
                await anyio.sleep(delays[number % len(delays)])
                await player.play(chunk)
            heard.append(await player.drain())

        async with running(player) as tasks:
            player.begin(1, recorder)
            tasks.start_soon(produce)
            gate = Act(opened, "open")
            for act in sorted([gate, *script], key=lambda act: act.at):
                await anyio.sleep_until(begun + act.at)
                if act.what == "stop":
                    heard.append(player.stop())
                    stopped = True
                    silent.append((act.at, 1e9))
                    break
                getattr(player, act.what)()
                if act.what == "pause":
                    silent.append((act.at, 1e9))
                elif act.what == "resume":
                    silent[:] = [(a, min(b, act.at) if a >= 0 else b) for a, b in silent]
            if not stopped:
                player.resume()
                now = anyio.current_time() - begun
                silent[:] = [(a, min(b, now) if a >= 0 else b) for a, b in silent]
            await anyio.sleep(len(chunks) * 0.3 + 10)

        whole, played = content(chunks), len(speaker.pcm)
        times = speaker.times - begun
        # Every sample once and in order; only fades change them.
        assert np.all(np.diff(speaker.times) >= 1 / RATE - 1e-9)
        gain = speaker.pcm / whole[:played]
        assert np.all((gain >= -1e-6) & (gain <= 1 + 1e-6))
        assert np.sum(np.abs(gain - 1) > 1e-6) <= FADE * 2 * len(script)
        # Nothing sounds while it must not, but for the fade.
        for start, end in silent:
            inside = (times >= start + FADE / RATE + 1 / RATE) & (times < end - 1e-9)
            assert not np.any(inside)
        # History: what was heard is what was written.
        assert {report.samples for report in heard} == {played}
        ends = lead + WORD * np.arange(1, 4)
        count = int(np.sum(ends <= played))
        for report in heard:
            assert report.words == tuple(f"w{number:02}" for number in range(count))
            assert report.tokens == 2 * count
            assert report.complete == (played == len(whole)) or stopped
        if not stopped:
            assert played == len(whole)
        # Marks say when it sounded.
        loud = np.flatnonzero(np.abs(whole[:played]) >= AUDIBLE)
        first = recorder.at(Mark.FIRST_SOUND)
        if len(loud):
            assert first == pytest.approx(speaker.times[loud[0]], abs=1e-6)
        else:
            assert first is None
        last = recorder.at(Mark.SOUND_END)
        if played:
            assert last == pytest.approx(speaker.times[-1] + 1 / RATE, abs=1e-6)
        else:
            assert last is None
        # The speaker's lane shows exactly the time in which something sounded.
        spans = recorder.trace("done").spans
        sounding = sum(span.end - span.start for span in spans)
        assert sounding == pytest.approx(played / RATE, abs=1e-6 * (len(spans) + 1))

    virtually(main)
