"""Audio: chunking never shows, every format reads, every bad file is one clear line."""

from __future__ import annotations

import math
import os
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from voiceloop.audio import (
    SILENCE_DBFS,
    AudioFile,
    Framer,
    Resampler,
    SampleBuffer,
    WavWriter,
    dbfs,
    fade_in,
    fade_out,
    from_pcm16,
    samples,
    silence,
    to_pcm16,
)
from voiceloop.errors import AudioError
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure

sizes = st.lists(st.integers(1, 3000), min_size=1, max_size=12)


def tone(seconds: float, rate: int = 16_000, hertz: float = 440.0) -> Pcm:
    return (0.4 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(
        np.float32
    )


def chunks(pcm: Pcm, lengths: Sequence[int]) -> list[Pcm]:
    cuts = np.cumsum(np.resize(lengths, len(pcm)))
    return list(np.split(pcm, cuts[cuts < len(pcm)]))


def read(path: Path, rate: int = 16_000) -> Pcm:
    with AudioFile(path, rate) as file:
        return np.concatenate(list(file.blocks()))


# ---- streams


@given(st.integers(0, 9000), sizes, st.integers(1, 700))
def test_any_chunking_gives_the_same_frames(length: int, lengths: list[int], size: int) -> None:
    pcm = np.arange(length, dtype=np.float32)
    framer = Framer(16_000, size)
    frames = [frame for chunk in chunks(pcm, lengths) for frame in framer.feed(chunk)]
    assert all(len(frame.pcm) == size for frame in frames)
    rest = framer.flush()
    frames += [rest] if rest else []
    assert [frame.start for frame in frames] == list(range(0, length, size))
    assert np.array_equal(np.concatenate([silence(0)] + [frame.pcm for frame in frames]), pcm)
    assert framer.flush() is None


rates = st.sampled_from([8000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000, 192_000])


@settings(deadline=None, max_examples=40)
@given(rates, rates, sizes, st.sampled_from(["LQ", "HQ"]))
def test_any_chunking_gives_the_same_resampled_audio(
    source: int, target: int, lengths: list[int], quality: str
) -> None:
    pcm = np.random.default_rng(0).standard_normal(source // 10).astype(np.float32)

    def resampled(pieces: Sequence[Pcm]) -> Pcm:
        resampler = Resampler(source, target, quality)  # pyright: ignore[reportArgumentType]
        return np.concatenate([resampler.feed(piece) for piece in pieces] + [resampler.flush()])

    whole = resampled([pcm])
    assert np.array_equal(resampled(chunks(pcm, lengths)), whole)
    assert abs(len(whole) - len(pcm) * target / source) <= 1


@pytest.mark.parametrize("source", [8000, 44_100, 48_000])
def test_resampling_keeps_a_tone_where_it_was(source: int) -> None:
    resampler = Resampler(source, 16_000)
    out = np.concatenate((resampler.feed(tone(0.5, source)), resampler.flush()))
    assert np.abs(out - tone(0.5))[400:-400].max() < 1e-3


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), max_size=12))
def test_a_sample_buffer_holds_exactly_the_samples_that_were_not_dropped(
    steps: list[tuple[int, int]],
) -> None:
    buffer, expected, start = SampleBuffer(50), silence(0), 50
    for add, drop in steps:
        piece = np.arange(buffer.end, buffer.end + add, dtype=np.float32)
        buffer.append(piece)
        expected = np.append(expected, piece)
        buffer.drop(buffer.start + drop)
        expected, start = expected[drop:], start + min(drop, len(expected))
        assert (buffer.start, buffer.end) == (start, start + len(expected))
        assert np.array_equal(buffer.read(buffer.start, buffer.end), expected)
    with pytest.raises(IndexError):
        buffer.read(buffer.start - 1, buffer.end)


def test_a_sample_buffer_gives_copies() -> None:
    buffer = SampleBuffer()
    buffer.append(tone(0.1))
    before = buffer.read(0, 100)
    before[:] = 9
    assert buffer.read(0, 100).max() < 1


def test_levels_are_in_decibels_below_full_scale() -> None:
    assert dbfs(np.ones(100, np.float32)) == 0.0
    assert dbfs(np.full(100, 0.1, np.float32)) == pytest.approx(-20, abs=1e-4)
    assert dbfs(silence(100)) == dbfs(silence(0)) == SILENCE_DBFS


@given(st.integers(0, 50), st.integers(0, 80))
def test_fades_touch_only_their_own_samples_and_reach_silence(length: int, fade: int) -> None:
    pcm = np.ones(length, np.float32)
    faded = fade_in(pcm, fade)
    assert np.array_equal(fade_out(pcm, fade), faded[::-1])
    assert pcm.min(initial=1.0) == 1.0
    assert faded[fade:].min(initial=1.0) == 1.0
    if length and fade:
        assert faded[0] == 0.0 and (np.diff(faded[:fade]) > 0).all()


@given(npst.arrays(np.int16, st.integers(0, 200)))
def test_sixteen_bit_samples_survive_the_way_there_and_back(integers: np.ndarray) -> None:
    assert np.array_equal(to_pcm16(from_pcm16(integers)), integers)


def test_what_is_too_loud_is_clipped_and_not_wrapped() -> None:
    assert to_pcm16(np.array([2.0, 1.0, -2.0], np.float32)).tolist() == [32767, 32767, -32768]


# ---- reading


@pytest.mark.parametrize("rate", [8000, 16_000, 22_050, 44_100, 48_000, 192_000])
@pytest.mark.parametrize(
    ("container", "encoding", "tolerance"),
    [
        ("WAV", "PCM_U8", 1e-2),
        ("WAV", "PCM_16", 1e-4),
        ("WAV", "PCM_24", 1e-4),
        ("WAV", "PCM_32", 1e-4),
        ("WAV", "FLOAT", 1e-4),
        ("WAV", "DOUBLE", 1e-4),
        ("WAVEX", "PCM_24", 1e-4),
        ("FLAC", "PCM_16", 1e-4),
        ("OGG", "VORBIS", 5e-2),
        ("AIFF", "PCM_16", 1e-4),
    ],
)
def test_every_sample_format_reads_as_the_same_audio(
    tmp_path: Path, rate: int, container: str, encoding: str, tolerance: float
) -> None:
    path = tmp_path / "sound.bin"  # the name must not matter
    soundfile.write(path, tone(0.5, rate), rate, format=container, subtype=encoding)
    pcm = read(path)
    assert len(pcm) == 8000
    assert np.abs(pcm - tone(0.5))[800:-800].max() < tolerance


@pytest.mark.parametrize("name", ["sound.raw", "sound.wav", "sound"])
def test_the_name_of_a_file_says_nothing_about_its_format(tmp_path: Path, name: str) -> None:
    soundfile.write(tmp_path / name, tone(0.1), 16_000, format="FLAC", subtype="PCM_16")
    assert len(read(tmp_path / name)) == 1600


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_channels_are_averaged(tmp_path: Path, channels: int) -> None:
    path = tmp_path / "sound.wav"
    data = np.zeros((1600, channels), np.float32)
    data[:, -1] = 0.5
    soundfile.write(path, data, 16_000, subtype="FLOAT")
    with AudioFile(path) as file:
        assert file.info.channels == channels
        assert np.concatenate(list(file.blocks())) == pytest.approx(0.5 / channels)


def test_a_file_can_be_read_at_another_rate(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "sound.wav", tone(1.0, 24_000), 24_000, subtype="FLOAT")
    assert len(read(tmp_path / "sound.wav", 48_000)) == 48_000


def test_a_long_file_is_read_in_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.wav"
    minute = np.tile(tone(1.0, 8000), 60)
    with soundfile.SoundFile(path, "w", 8000, 1, "PCM_16") as file:
        for _ in range(10):
            file.write(minute)
    with AudioFile(path) as file:
        assert file.info.seconds == 600
        tracemalloc.start()
        total = sum(len(block) for block in file.blocks())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert total == 600 * 16_000
    assert peak < 2**20


# ---- bad input


def wav(count: int = 1600, rate: int = 16_000) -> bytes:
    data = to_pcm16(tone(count / 16_000)).tobytes()
    return (
        struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, rate,
                    2 * rate, 2, 16)
        + struct.pack("<4sI", b"data", len(data))
        + data
    )  # fmt: skip


def no_numbers(path: Path) -> None:
    data = tone(1.0)
    data[8000] = np.nan
    data[9000] = np.inf
    soundfile.write(path, data, 16_000, subtype="FLOAT")


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing file": (lambda path: None, "does not exist"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "empty file": (lambda path: path.touch(), "is an empty file"),
    "text renamed": (lambda path: path.write_text("hello " * 40), "is not an audio file"),
    "zero length": (lambda path: path.write_bytes(wav(0)), "holds no audio"),
    "not numbers": (no_numbers, "not numbers (the first at 0.50 s)"),
    "pipe": (lambda path: os.mkfifo(path), "is not a regular file"),
    "rate too low": (lambda path: path.write_bytes(wav(rate=4000)), "4000 Hz"),
    "rate too high": (lambda path: path.write_bytes(wav(rate=400_000)), "400000 Hz"),
    "no rate": (lambda path: path.write_bytes(wav(rate=0)), "header is cut short or malformed"),
    "cut flac header": (lambda path: path.write_bytes(b"fLaC\0\0"), "header is cut short"),
} | {
    f"wav cut at {cut}": (lambda path, cut=cut: path.write_bytes(wav()[:cut]), expected)
    for cut, expected in [
        (3, "is not an audio file"),
        (4, "header is cut short"),
        (8, "header is cut short"),
        (20, "header is cut short"),
        (40, "header is cut short"),
        (43, "holds no audio"),
        (44, "holds no audio"),
        (45, "holds no audio"),
    ]
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line_with_the_name_and_a_hint(tmp_path: Path, case: str) -> None:
    make, expected = BAD[case]
    path = tmp_path / "input.wav"
    make(path)
    with pytest.raises(AudioError) as caught:
        read(path)
    assert expected in caught.value.message
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message and caught.value.hint


@given(st.binary(max_size=200), st.integers(0, 60))
def test_no_bytes_at_all_make_the_reader_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, keep: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.wav"
    path.write_bytes(wav()[:keep] + noise)
    try:
        read(path)
    except AudioError as error:
        assert error.hint


@pytest.mark.parametrize("missing", [1, 2, 1001, 3000])
def test_a_wav_shorter_than_its_header_says_is_read_to_its_end_with_a_warning(
    tmp_path: Path, missing: int
) -> None:
    path = tmp_path / "cut.wav"
    path.write_bytes(wav()[:-missing])
    with AudioFile(path) as file:
        assert len(np.concatenate(list(file.blocks()))) == (3200 - missing) // 2
        assert f"{missing} bytes" in file.info.warning and str(path) in file.info.warning


def test_a_length_that_was_never_known_is_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "piped.wav"
    data = wav()
    path.write_bytes(data[:40] + b"\xff\xff\xff\xff" + data[44:])
    with AudioFile(path) as file:
        assert len(np.concatenate(list(file.blocks()))) == 1600
        assert file.info.warning == ""


def test_a_flac_that_breaks_off_is_read_as_far_as_it_goes_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "cut.flac"
    rng = np.random.default_rng(0)
    soundfile.write(path, 0.1 * rng.standard_normal(160_000), 16_000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with AudioFile(path) as file:
        pcm = np.concatenate(list(file.blocks()))
        assert 4 * 16_000 < len(pcm) <= 5 * 16_000
        assert "only its first" in file.info.warning
        assert file.info.seconds == pytest.approx(len(pcm) / 16_000)


# ---- writing


@settings(max_examples=30)
@given(npst.arrays(np.int16, st.integers(1, 3000)), sizes)
def test_a_written_wav_reads_back_exactly_however_it_was_chunked(
    tmp_path_factory: pytest.TempPathFactory, integers: np.ndarray, lengths: list[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "out.wav"
    pcm = from_pcm16(integers)
    with WavWriter(path, 16_000) as writer:
        for chunk in chunks(pcm, lengths):
            writer.write(chunk)
    assert np.array_equal(read(path), pcm)
    assert soundfile.info(path).subtype == "PCM_16"


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    path.write_bytes(b"precious")
    with pytest.raises(RuntimeError), WavWriter(path, 16_000) as writer:
        writer.write(tone(1.0))
        assert path.read_bytes() == b"precious"
        raise RuntimeError("synthesis broke")
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_follows_a_link_to_the_file_it_names(tmp_path: Path) -> None:
    (tmp_path / "real.wav").write_bytes(b"old")
    (tmp_path / "link.wav").symlink_to("real.wav")
    with WavWriter(tmp_path / "link.wav", 16_000) as writer:
        writer.write(tone(0.1))
    assert (tmp_path / "link.wav").is_symlink()
    assert len(read(tmp_path / "real.wav")) == 1600


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("nowhere/out.wav", "cannot be written"),
        ("file/out.wav", "cannot be written"),
        (".", "is a folder"),
        ("pipe", "not a regular file"),
        ("x" * 300, "cannot be written"),
    ],
)
def test_an_unwritable_output_is_found_before_anything_is_written(
    tmp_path: Path, target: str, expected: str
) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AudioError, match=expected) as caught:
        WavWriter(tmp_path / target, 16_000)
    assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is write-protected for root")
def test_a_write_protected_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    path.touch(0o444)
    with pytest.raises(AudioError, match="write-protected"):
        WavWriter(path, 16_000)


def test_a_disk_without_room_is_one_clear_line(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full to stand for a full disk")
    path = tmp_path / "out.wav"
    (tmp_path / f".out.wav.{os.getpid()}.part").symlink_to("/dev/full")
    with pytest.raises(AudioError, match="No space left"), WavWriter(path, 16_000) as writer:
        for _ in range(100):
            writer.write(tone(1.0))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rate", [0, 7999, 192_001])
def test_no_rate_outside_the_range_is_taken(rate: int) -> None:
    with pytest.raises(AudioError, match=str(rate)):
        Resampler(rate, 16_000)


def test_durations_become_whole_samples() -> None:
    assert [samples(20), samples(32), samples(0.04, 48_000)] == [320, 512, 2]
    assert math.isclose(samples(1000, 44_100), 44_100)
