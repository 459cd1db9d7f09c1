"""Speakers and microphones on a virtual clock, exact to the microsecond."""

from __future__ import annotations

import os
from contextlib import aclosing
from pathlib import Path

import anyio
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sounds import tone
from tests.speakers import (
    RATE,
    Act,
    RecordingSpeaker,
    acts,
    content,
    play_all,
    reply,
    running,
    virtually,
)
from voiceloop.audio.devices import (
    AHEAD_S,
    SILENT_S,
    DcBlocker,
    FileMicrophone,
    FilteredMicrophone,
    Microphone,
    NullSpeaker,
    WavSpeaker,
)
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import FRAME_MS, HighPass, samples
from voiceloop.audio.player import Player
from voiceloop.trace.record import Recorder
from voiceloop.types import AudioFrame, Pcm

pytestmark = pytest.mark.virtual

# Speakers


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
                player.begin(1, Recorder(1))
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
            player.begin(1, recorder)
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


MIC_FRAME = samples(FRAME_MS)


async def collect(microphone: Microphone, count: int) -> list[tuple[float, AudioFrame]]:
    begun = anyio.current_time()
    found: list[tuple[float, AudioFrame]] = []
    async with aclosing(microphone.frames()) as frames:
        async for frame in frames:
            found.append((anyio.current_time() - begun, frame))
            if len(found) == count:
                break
    return found


async def test_frames_come_when_their_last_sample_has_been_recorded(tmp_path: Path):
    path = recording(tmp_path / "in.wav", 1.01)
    with FileMicrophone(path) as microphone:
        found = await collect(microphone, 160)
    assert [at for at, _ in found] == pytest.approx([0.01 * (k + 1) for k in range(160)])
    assert [frame.start for _, frame in found] == list(range(0, 160 * MIC_FRAME, MIC_FRAME))
    assert {(len(frame.pcm), frame.rate) for _, frame in found} == {(MIC_FRAME, 16_000)}
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
        assert late == 9, "those recorded during the sleep; the others are on time"


@pytest.mark.parametrize("hold_at", [0.0, 0.3, 0.305, 0.32])
async def test_holding_stops_the_clock_of_the_file(tmp_path: Path, hold_at: float):
    with FileMicrophone(recording(tmp_path / "in.wav", 1)) as microphone:
        async with anyio.create_task_group() as tasks:
            found: list[tuple[float, AudioFrame]] = []

            async def listen() -> None:
                found.extend(await collect(microphone, 80))

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
    assert [frame.start for _, frame in found] == list(range(0, 80 * MIC_FRAME, MIC_FRAME))
    for at, frame in found:
        recorded = frame.end / 16_000
        # At 0.32 the frame that ends there comes at the very moment of the hold.
        assert at == pytest.approx(recorded) or at == pytest.approx(recorded + 2)
        if abs(recorded - hold_at) > 1e-9:
            assert at == pytest.approx(recorded + (2 if recorded > hold_at else 0))


async def test_the_file_is_finished_with_the_frame_that_holds_its_end(tmp_path: Path):
    for seconds, last in ((0.1, 10), (0.105, 10)):
        with FileMicrophone(recording(tmp_path / "in.wav", seconds)) as microphone:
            assert not microphone.finished
            async with aclosing(microphone.frames()) as frames:
                async for frame in frames:
                    assert microphone.finished == (frame.start // MIC_FRAME >= last)
                    if frame.start > 3200:
                        break


async def test_at_full_pace_no_time_passes(tmp_path: Path):
    path = recording(tmp_path / "in.wav", 3, rate=44_100)
    with FileMicrophone(path, pace="max") as microphone:
        found = await collect(microphone, 400)
    assert {at for at, _ in found} == {0}
    assert len(found) == 400 and microphone.finished


async def test_a_microphone_with_an_offset_is_heard_without_it(tmp_path: Path):
    sound: Pcm = tone(0.5)
    found: list[Pcm] = []
    for name, offset in (("with", 0.2), ("without", 0.0)):
        soundfile.write(tmp_path / f"{name}.wav", sound + offset, 16_000, subtype="FLOAT")
        with FileMicrophone(tmp_path / f"{name}.wav", pace="max") as file:
            heard = await collect(FilteredMicrophone(file, DcBlocker()), 50)
        assert [frame.start for _, frame in heard] == list(range(0, 8000, 160))
        found.append(np.concatenate([frame.pcm for _, frame in heard]))
    assert np.abs(found[0] - found[1]).max() < 1e-6
    assert np.array_equal(found[1], HighPass().feed(sound))


SILENCES = {
    "zeros": np.zeros(160_000),
    "dither": np.random.default_rng(0).integers(-2, 3, 160_000) / 32768,
    "an offset": np.full(160_000, 0.05),
    "an offset with dither": 0.01 + np.random.default_rng(1).integers(-1, 2, 160_000) / 32768,
}


@pytest.mark.parametrize("kind", SILENCES)
async def test_a_microphone_that_is_muted_is_told_once_within_five_seconds(
    tmp_path: Path, kind: str
):
    path, told = tmp_path / "in.wav", list[float]()
    soundfile.write(path, SILENCES[kind], 16_000, subtype="FLOAT")
    with FileMicrophone(path) as file:
        begun = anyio.current_time()
        muted = FilteredMicrophone(
            file, DcBlocker(lambda: told.append(anyio.current_time() - begun))
        )
        await collect(muted, 1500)
    assert told == [pytest.approx(SILENT_S)] and told[0] <= 5


@pytest.mark.parametrize("at", [0.0, 0.7, 3.9])
@pytest.mark.parametrize("level", [3e-4, 0.01, 0.3])
async def test_one_that_hears_anything_is_not(tmp_path: Path, at: float, level: float):
    pcm = np.zeros(240_000)
    noise = np.random.default_rng(0).normal(0, level, 1600)
    pcm[round(at * 16_000) :][:1600] = noise
    path, told = tmp_path / "in.wav", list[bool]()
    soundfile.write(path, pcm, 16_000, subtype="FLOAT")
    with FileMicrophone(path) as file:
        await collect(FilteredMicrophone(file, DcBlocker(lambda: told.append(True))), 1500)
    assert not told, "people are silent for long"
