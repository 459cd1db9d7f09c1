"""A folder of recordings as clips: what is beside them is known, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.sounds import tone
from voiceloop.audio.frames import SPEECH_RATE, dbfs
from voiceloop.bench.clips import ClipSpeech, room
from voiceloop.bench.suites import LOUDEST, QUIETEST, read_folder
from voiceloop.errors import AudioError
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure


def write(path: Path, pcm: Pcm, rate: int = SPEECH_RATE) -> None:
    soundfile.write(path, pcm, rate)


def test_recordings_come_by_name_with_their_transcripts(tmp_path: Path) -> None:
    write(tmp_path / "b.wav", tone(0.5))
    write(tmp_path / "a.FLAC", tone(1.0, 48_000), 48_000)
    write(tmp_path / "c.ogg", tone(0.5))
    (tmp_path / "b.txt").write_text("What time\n is it?\n", encoding="utf-8")
    (tmp_path / "c.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("not a recording", encoding="utf-8")
    clips = read_folder(tmp_path)
    assert [clip.name for clip in clips] == ["a", "b", "c"]
    assert [clip.said for clip in clips] == [
        ClipSpeech(),
        ClipSpeech("What time is it?"),
        ClipSpeech(),
    ]
    assert len(clips[0].pcm) == SPEECH_RATE
    assert clips[1].pcm == pytest.approx(tone(0.5), abs=1e-4)


@pytest.mark.parametrize("floor", [-120.0, -60.0, -20.0])
def test_what_follows_is_as_loud_as_the_quietest_part(tmp_path: Path, floor: float) -> None:
    quiet = room(np.random.default_rng(1), SPEECH_RATE, floor)
    write(tmp_path / "a.wav", np.concatenate((quiet, tone(1.0), quiet)))
    (clip,) = read_folder(tmp_path)
    after = clip.read(len(clip.pcm), SPEECH_RATE)
    assert dbfs(after) == pytest.approx(np.clip(floor, QUIETEST, LOUDEST), abs=3)


def test_what_is_no_folder_is_one_line(tmp_path: Path) -> None:
    write(tmp_path / "a.wav", tone(0.1))
    for path in (tmp_path / "a.wav", tmp_path / "missing"):
        with pytest.raises(
            AudioError, match=r"cannot be read: (Not a directory|No such)"
        ) as refused:
            read_folder(path)
        assert refused.value.hint


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None], ids=["not text", "a folder"])
def test_a_transcript_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    write(tmp_path / "a.wav", tone(0.1))
    if content is None:
        (tmp_path / "a.txt").mkdir()
    else:
        (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(AudioError, match=r"a\.txt") as refused:
        read_folder(tmp_path)
    assert refused.value.hint
