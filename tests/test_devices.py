"""The player, speakers and microphones on a virtual clock, exact to the microsecond."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import numpy as np
import pytest
import soundfile
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from voiceloop.audio import fade_out, samples
from voiceloop.audiofiles import AudioFile
from voiceloop.devices import AHEAD_S, FileMicrophone, NullSpeaker, Player, WavSpeaker
from voiceloop.errors import AudioError
from voiceloop.playback import AUDIBLE, FADE_MS, Heard
from voiceloop.trace import Lane, Mark, Recorder
from voiceloop.types import AudioFrame, Clause, Pcm, Span, SpeechChunk, SpokenWord

pytestmark = pytest.mark.virtual

RATE = 8_000
FADE = samples(FADE_MS, RATE)
WORD = RATE // 4
"""Samples of a word."""


def virtually(main: Callable[[], Awaitable[None]]) -> None:
    """Run `main` on a virtual clock of its own; for properties, which run many."""
    clock = MockClock(autojump_threshold=0)
    anyio.run(main, backend="trio", backend_options={"clock": clock})


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
async def running(player: Player) -> AsyncGenerator[TaskGroup]:
    """The player at work, with a group for what goes on beside it; all ends with the block."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(player.run)
        yield tasks
        tasks.cancel_scope.cancel()


async def play_all(player: Player, chunks: list[SpeechChunk]) -> Heard:
    for chunk in chunks:
        await player.play(chunk)
    return await player.drain()


# Player: one reply without interruption


async def test_a_reply_sounds_from_the_moment_its_gate_opens_without_a_gap():
    speaker, chunks, recorder = RecordingSpeaker(), reply(1, 3, lead=600), Recorder(1)
    player = Player(speaker)
    begun = anyio.current_time()
    async with running(player) as tasks:
        player.begin(recorder)
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
        player.begin(Recorder(1))
        player.open()
        heard = await play_all(player, reply(1, 4))
        assert anyio.current_time() - begun == pytest.approx(1.0, abs=1e-6)
        assert heard == Heard(1, ("w00", "w01", "w02", "w03"), 8, 4 * WORD, complete=True)


async def test_an_empty_reply_is_over_at_once_and_leaves_no_mark():
    player, recorder = Player(RecordingSpeaker()), Recorder(1)
    async with running(player):
        player.begin(recorder)
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
        player.begin(Recorder(1))
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
        player.begin(Recorder(2))
        player.open()
        await player.play(reply(1, 1, size=WORD)[0])
        assert await player.drain() == Heard(2, complete=True)
    assert not len(speaker.pcm)


async def test_only_audible_gaps_count_as_underruns():
    speaker, recorder, chunks = RecordingSpeaker(), Recorder(1), reply(1, 3, size=WORD)
    player = Player(speaker)
    async with running(player):
        player.begin(recorder)
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
        player.begin(recorder)
        player.open()
        await play_all(player, reply(1, 4))
    trace = recorder.trace("done")
    assert trace.counters == {}
    assert len(trace.spans) == 1
    assert np.diff(speaker.times) == pytest.approx(1 / RATE)


async def test_clauses_are_told_as_they_begin_to_sound():
    told: list[tuple[int, float]] = []
    begun = anyio.current_time()
    player = Player(
        RecordingSpeaker(),
        on_clause=lambda clause: told.append((clause.index, anyio.current_time() - begun)),
    )
    (first,) = reply(1, 1, size=WORD)
    second = SpeechChunk(1, Clause(1, 1, "more", "more"), first.pcm, RATE, 0, last=True)
    async with running(player):
        player.begin(Recorder(1))
        player.open()
        await play_all(player, [first, second])
    assert [index for index, _ in told] == [0, 1]
    assert told[0][1] == 0
    assert 0.25 - AHEAD_S - 0.02 <= told[1][1] <= 0.25


async def test_a_reply_at_another_rate_is_resampled_and_heard_whole():
    speaker = RecordingSpeaker(24_000)
    player = Player(speaker)
    async with running(player):
        player.begin(Recorder(1))
        player.open()
        heard = await play_all(player, reply(1, 4))
    assert heard.complete and heard.tokens == 8
    assert len(speaker.pcm) == pytest.approx(4 * WORD * 3, abs=2)


# Player: interruptions


async def test_a_reply_stopped_before_it_is_audible_leaves_no_first_sound():
    speaker, recorder = RecordingSpeaker(), Recorder(1)
    player = Player(speaker)
    async with running(player) as tasks:
        player.begin(recorder)
        player.open()
        tasks.start_soon(play_all, player, reply(1, 2, lead=400))
        await anyio.sleep(0.02)
        assert recorder.at(Mark.FIRST_SOUND) is not None, "it has been handed over already"
        heard = player.stop()
        assert recorder.at(Mark.FIRST_SOUND) is None
    assert (heard.words, heard.tokens, heard.samples) == ((), 0, 160 + FADE)


async def test_a_stop_before_any_sound_hears_nothing_and_leaves_no_mark():
    player, recorder = Player(RecordingSpeaker()), Recorder(1)
    async with running(player) as tasks:
        player.begin(recorder)
        tasks.start_soon(play_all, player, reply(1, 2))
        await anyio.sleep(1)
        assert player.stop() == Heard(1)
    assert recorder.trace("interrupted").marks == {}


async def test_what_has_been_heard_is_known_while_it_sounds():
    player = Player(RecordingSpeaker())
    async with running(player) as tasks:
        player.begin(Recorder(1))
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
        player.begin(recorders[0])
        player.open()
        tasks.start_soon(play_all, player, reply(1, 4))
        await anyio.sleep(0.3)
        player.begin(recorders[1])
        player.open()
        await play_all(player, reply(2, 1))
    assert recorders[0].at(Mark.SOUND_END) == pytest.approx(begun + 0.3 + FADE / RATE)
    # The player may be waiting for room when the old reply is cut; that takes a block at most.
    first = recorders[1].at(Mark.FIRST_SOUND)
    assert first is not None
    assert FADE / RATE <= first - begun - 0.3 <= FADE / RATE + 0.02
    assert np.array_equal(speaker.pcm[-WORD:], content(reply(2, 1)))


@dataclass(frozen=True)
class Act:
    at: float
    what: str


acts = st.lists(
    st.builds(Act, st.floats(0, 1.2), st.sampled_from(["pause", "resume", "resume", "stop"])),
    max_size=6,
).map(lambda made: sorted(made, key=lambda act: act.at))


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
            player.begin(recorder)
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


# Speakers


async def test_a_wav_file_is_a_recording_of_the_loudspeaker(tmp_path: Path):
    path, chunks = tmp_path / "r.wav", reply(1, 2)
    with WavSpeaker(path, RATE) as speaker:
        player = Player(speaker)
        async with running(player) as tasks:
            await anyio.sleep(1)
            player.begin(Recorder(1))
            player.open()
            tasks.start_soon(play_all, player, chunks)
            await anyio.sleep(0.3)
            player.pause()
            await anyio.sleep(0.2)
            player.resume()
            await anyio.sleep(1)
    pcm, rate = soundfile.read(path, dtype="float32")
    whole, paused = content(chunks), round(0.3 * RATE)
    assert rate == RATE
    assert pcm[:paused] == pytest.approx(whole[:paused], abs=1e-4), "it begins with the sound"
    assert 0 < np.abs(pcm[paused : paused + FADE]).max() < 0.95
    resumed = round(0.5 * RATE)
    assert not np.any(pcm[paused + FADE : resumed])
    rest = pcm[resumed:]
    assert len(rest) == len(whole) - paused - FADE
    assert rest[FADE:] == pytest.approx(whole[paused + 2 * FADE :], abs=1e-4)


class Both(RecordingSpeaker):
    """Records what sounds, while a wav file does the same."""

    def __init__(self, wav: WavSpeaker) -> None:
        super().__init__(wav.rate)
        self._wav = wav

    def write(self, pcm: Pcm) -> float:
        self._wav.write(pcm)
        return super().write(pcm)

    def cut(self, fade: int) -> int:
        self._wav.cut(fade)
        return super().cut(fade)

    async def room(self) -> None:
        await self._wav.room()


@settings(max_examples=20)
@given(acts, st.integers(100, 3000))
def test_a_wav_file_holds_what_sounded_when_it_sounded(
    tmp_path_factory: pytest.TempPathFactory, script: list[Act], size: int
):
    path = tmp_path_factory.mktemp("wav") / "r.wav"

    async def main() -> None:
        begun = anyio.current_time()
        with WavSpeaker(path, RATE) as wav:
            speaker = Both(wav)
            player = Player(speaker)
            async with running(player) as tasks:
                player.begin(Recorder(1))
                player.open()
                tasks.start_soon(play_all, player, reply(1, 3, size=size))
                for act in script:
                    # On whole samples, so that where a stretch begins needs no rounding.
                    await anyio.sleep_until(begun + round(act.at * RATE) / RATE)
                    getattr(player, act.what)()
                await anyio.sleep(2)
        pcm, _ = soundfile.read(path, dtype="float32")
        at = np.round((speaker.times - speaker.times[:1]) * RATE).astype(int)
        expected = np.zeros(max(at, default=-1) + 1, np.float32)
        expected[at] = speaker.pcm
        assert pcm == pytest.approx(expected, abs=1e-4)

    virtually(main)


async def test_at_full_pace_a_reply_is_written_end_to_end_at_once(tmp_path: Path):
    path, chunks, recorder = tmp_path / "r.wav", reply(1, 20), Recorder(1)
    begun = anyio.current_time()
    with WavSpeaker(path, RATE, pace="max") as speaker:
        player = Player(speaker)
        async with running(player):
            await anyio.sleep(1)
            player.begin(recorder)
            player.open()
            heard = await play_all(player, chunks)
    assert anyio.current_time() == begun + 1
    assert heard.complete
    assert recorder.trace("done").counters == {}
    assert soundfile.read(path, dtype="float32")[0] == pytest.approx(content(chunks), abs=1e-4)


async def test_a_null_speaker_keeps_real_time():
    speaker, begun = NullSpeaker(RATE), anyio.current_time()
    for _ in range(100):
        await speaker.room()
        speaker.write(np.zeros(160, np.float32))
        assert speaker.due() - anyio.current_time() <= AHEAD_S + 0.02 + 1e-9
    assert speaker.due() == pytest.approx(begun + 2)
    await anyio.sleep(5)
    assert speaker.due() == anyio.current_time()


def test_an_unwritable_wav_is_refused_before_anything_plays(tmp_path: Path):
    with pytest.raises(AudioError, match="cannot be written"):
        WavSpeaker(tmp_path / "missing" / "r.wav", RATE)


async def test_a_failure_leaves_no_wav_behind(tmp_path: Path):
    with pytest.raises(RuntimeError), WavSpeaker(tmp_path / "r.wav", RATE) as speaker:
        await speaker.room()
        speaker.write(np.ones(100, np.float32))
        raise RuntimeError
    assert not os.listdir(tmp_path)


# Microphones


def recording(path: Path, seconds: float, rate: int = 16_000) -> Path:
    draw = np.random.default_rng(0)
    soundfile.write(path, draw.uniform(-0.5, 0.5, round(seconds * rate)), rate)
    return path


async def collect(microphone: FileMicrophone, count: int) -> list[tuple[float, AudioFrame]]:
    begun = anyio.current_time()
    found: list[tuple[float, AudioFrame]] = []
    async for frame in microphone.frames():
        found.append((anyio.current_time() - begun, frame))
        if len(found) == count:
            microphone.stop()
    return found


async def test_frames_come_when_their_last_sample_has_been_recorded(tmp_path: Path):
    path = recording(tmp_path / "in.wav", 1.01)
    with FileMicrophone(path) as microphone:
        found = await collect(microphone, 80)
    assert [at for at, _ in found] == pytest.approx([0.02 * (k + 1) for k in range(80)])
    assert [frame.start for _, frame in found] == list(range(0, 80 * 320, 320))
    assert {(len(frame.pcm), frame.rate) for _, frame in found} == {(320, 16_000)}
    pcm = np.concatenate([frame.pcm for _, frame in found])
    with AudioFile(path) as file:
        whole = np.concatenate(list(file.blocks()))
    assert np.array_equal(pcm[: len(whole)], whole)
    assert not np.any(pcm[len(whole) :]), "silence follows the file"


async def test_a_slow_listener_does_not_slow_the_clock_down(tmp_path: Path):
    with FileMicrophone(recording(tmp_path / "in.wav", 1)) as microphone:
        begun, late = anyio.current_time(), 0
        async with aclosing(microphone.frames()) as frames:
            async for frame in frames:
                late += anyio.current_time() - begun > frame.end / 16_000 + 1e-9
                if frame.start == 3200:
                    await anyio.sleep(0.1)
                if frame.start == 16_000:
                    break
        assert late == 4, "those recorded during the sleep; the others are on time"


@pytest.mark.parametrize("hold_at", [0.0, 0.3, 0.31, 0.32])
async def test_holding_stops_the_clock_of_the_file(tmp_path: Path, hold_at: float):
    with FileMicrophone(recording(tmp_path / "in.wav", 1)) as microphone:
        async with anyio.create_task_group() as tasks:
            found: list[tuple[float, AudioFrame]] = []

            async def listen() -> None:
                found.extend(await collect(microphone, 40))

            if hold_at == 0.0:
                microphone.hold()
                await anyio.sleep(0.5)
            tasks.start_soon(listen)
            await anyio.sleep(hold_at)
            microphone.hold()
            microphone.hold()
            await anyio.sleep(2)
            microphone.release()
            microphone.release()
    assert [frame.start for _, frame in found] == list(range(0, 40 * 320, 320))
    for at, frame in found:
        recorded = frame.end / 16_000
        # At 0.32 the frame that ends there comes at the very moment of the hold.
        assert at == pytest.approx(recorded) or at == pytest.approx(recorded + 2)
        if abs(recorded - hold_at) > 1e-9:
            assert at == pytest.approx(recorded + (2 if recorded > hold_at else 0))


async def test_the_file_is_finished_with_the_frame_that_holds_its_end(tmp_path: Path):
    for seconds, last in ((0.1, 5), (0.11, 5)):
        with FileMicrophone(recording(tmp_path / "in.wav", seconds)) as microphone:
            assert not microphone.finished
            async with aclosing(microphone.frames()) as frames:
                async for frame in frames:
                    assert microphone.finished == (frame.start // 320 >= last)
                    if frame.start > 3200:
                        break


async def test_a_held_microphone_can_be_stopped(tmp_path: Path):
    with FileMicrophone(recording(tmp_path / "in.wav", 1)) as microphone:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(collect, microphone, 50))
            await anyio.sleep(0.1)
            microphone.hold()
            await anyio.sleep(1)
            microphone.stop()


async def test_at_full_pace_no_time_passes(tmp_path: Path):
    path = recording(tmp_path / "in.wav", 3, rate=44_100)
    with FileMicrophone(path, pace="max") as microphone:
        found = await collect(microphone, 200)
    assert {at for at, _ in found} == {0}
    assert len(found) == 200 and microphone.finished


async def test_a_minute_ends_on_time_to_the_microsecond(tmp_path: Path):
    path = tmp_path / "in.wav"
    soundfile.write(path, np.zeros(60 * 8000, np.float32), 8000)
    with FileMicrophone(path) as microphone:
        begun = anyio.current_time()
        async with aclosing(microphone.frames()) as frames:
            async for _ in frames:
                if microphone.finished:
                    break
        assert anyio.current_time() - begun == pytest.approx(60.02, abs=1e-6)


def test_a_file_that_is_no_audio_is_refused_when_it_is_opened(tmp_path: Path):
    path = tmp_path / "in.wav"
    path.write_text("hello")
    with pytest.raises(AudioError, match="not an audio file"):
        FileMicrophone(path)
