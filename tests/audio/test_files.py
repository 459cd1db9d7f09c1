"""Audio files: every format reads, every bad one is one clear line, nothing is half written."""

from __future__ import annotations

import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.sounds import chunks, sizes, tone
from voiceloop.audio.files import AudioFile, WavWriter
from voiceloop.audio.frames import from_pcm16, to_pcm16
from voiceloop.errors import AudioError
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure


def read(path: Path, rate: int = 16_000) -> Pcm:
    with AudioFile(path, rate) as file:
        return np.concatenate(list(file.blocks()))


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


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_channels_are_averaged(tmp_path: Path, channels: int) -> None:
    path = tmp_path / "sound.wav"
    data = np.zeros((1600, channels), np.float32)
    data[:, -1] = 0.5
    soundfile.write(path, data, 16_000, subtype="FLOAT")
    with AudioFile(path) as file:
        assert file.info.channels == channels
        assert np.concatenate(list(file.blocks())) == pytest.approx(0.5 / channels)


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


def beyond_sound(path: Path, value: float) -> None:
    data = tone(1.0).astype(np.float64)
    data[8000:] = value
    soundfile.write(path, data, 48_000, subtype="DOUBLE" if abs(value) > 1e38 else "FLOAT")


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing file": (lambda path: None, "does not exist"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "empty file": (lambda path: path.touch(), "is an empty file"),
    "text renamed": (lambda path: path.write_text("hello " * 40), "is not an audio file"),
    "zero length": (lambda path: path.write_bytes(wav(0)), "holds no audio"),
    "not numbers": (no_numbers, "no sound (the first at 0.50 s)"),
    **{
        f"samples of {value}": (
            lambda path, value=value: beyond_sound(path, value),
            "no sound (the first at 0.17 s)",
        )
        for value in (1e38, -3e38, 1e11, 1e300, -np.inf)
    },
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


def test_mp3_is_read_without_a_word_of_the_decoder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Louder and softer by turns: then frames lend each other bits.
    swelling = tone(4.0) * np.abs(np.sin(np.arange(64_000) / 2000)).astype(np.float32)
    noise = np.random.default_rng(0).normal(0, 0.2, 64_000).astype(np.float32)
    path = tmp_path / "speech.mp3"
    soundfile.write(path, swelling + noise * (swelling > 0.1), 16_000, format="MP3")
    whole, _ = soundfile.read(path, dtype="float32")
    assert np.abs(read(path) - whole).max() < 1e-4
    assert capfd.readouterr() == ("", "")


def test_a_flac_that_is_damaged_from_the_start_is_not_said_to_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "damaged.flac"
    rng = np.random.default_rng(0)
    soundfile.write(path, 0.1 * rng.standard_normal(8_000), 16_000)
    whole = path.read_bytes()
    for at in range(100, len(whole), 400):
        path.write_bytes(whole[:at] + rng.bytes(400) + whole[at + 400 :])
        try:
            with AudioFile(path) as file:
                pcm = np.concatenate(list(file.blocks()))
            assert len(pcm) == 8_000 or "is damaged: only its first" in file.info.warning
        except AudioError as error:
            assert "damaged" in error.message or "no sound" in error.message


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
    with WavWriter(path, 16_000) as writer:
        writer.write(tone(0.1))
    precious = path.read_bytes()
    with pytest.raises(RuntimeError), WavWriter(path, 16_000) as writer:
        writer.write(tone(1.0))
        assert path.read_bytes() == precious
        raise RuntimeError("synthesis broke")
    assert path.read_bytes() == precious
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "text"])
def test_what_others_made_is_never_written_over(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out.wav"
    if kind == "text":
        path.write_text("a shopping list")
    else:
        soundfile.write(path, tone(0.5), 16_000, format=kind)
    precious = path.read_bytes()
    with pytest.raises(AudioError, match="was not made by voiceloop") as caught:
        WavWriter(path, 16_000)
    assert caught.value.hint
    assert path.read_bytes() == precious
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_and_one_that_was_written_here_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    path.touch()
    for seconds in (0.1, 0.2, 0.0):
        with WavWriter(path, 16_000) as writer:
            writer.write(tone(seconds))
        assert soundfile.info(path).frames == round(seconds * 16_000)


@pytest.mark.parametrize("name", ["out.mp3", "out.flac", "out", "out.wav.bak"])
def test_only_wav_files_are_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(AudioError, match="not the name of a wav file") as caught:
        WavWriter(tmp_path / name, 16_000)
    assert str((tmp_path / name).with_suffix(".wav")) in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_writer_follows_a_link_to_the_file_it_names(tmp_path: Path) -> None:
    (tmp_path / "real.wav").touch()
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
        ("pipe.wav", "not a regular file"),
        ("x" * 300 + ".wav", "cannot be written"),
    ],
)
def test_an_unwritable_output_is_found_before_anything_is_written(
    tmp_path: Path, target: str, expected: str
) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe.wav")
    with pytest.raises(AudioError, match=expected) as caught:
        WavWriter(tmp_path / target, 16_000)
    assert caught.value.hint


def test_a_write_protected_file_is_left_alone(unprivileged: Path) -> None:
    path = unprivileged / "out.wav"
    path.touch(0o444)
    with pytest.raises(AudioError, match="write-protected"):
        WavWriter(path, 16_000)


def test_a_disk_without_room_is_one_clear_line(small_disk: Path) -> None:
    path = small_disk / "out.wav"
    with pytest.raises(AudioError, match="No space left"), WavWriter(path, 16_000) as writer:
        for _ in range(100):
            writer.write(tone(1.0))
    assert list(small_disk.iterdir()) == []
