"""XTTS of the real Coqui TTS with tiny random voices: the same audio sooner, and clear errors."""

from __future__ import annotations

import io
import shutil
import sys
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tts.conftest import MakeVoice, open_voice
from tests.tts.saying import TEXTS, check_line, check_same, clause, joined, say
from voiceloop.audio.files import WavWriter
from voiceloop.engines import Tts
from voiceloop.errors import AudioError, ConfigError, EngineError, ModelCorrupt, ModelNotFound
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.coqui import coqui, load_voice
from voiceloop.tts.delivery import trim
from voiceloop.types import Pcm

pytestmark = pytest.mark.models

XTTS = "tts_models/multilingual/multi-dataset/xtts_v2"
SPEED = 1.3
TOKEN = 1114
"""Samples of a token, more or less."""


@pytest.fixture(scope="module")
def folder(make_xtts: MakeVoice) -> Path:
    return make_xtts()


@pytest.fixture(scope="module")
def engine(folder: Path) -> Tts:
    return open_voice(folder)


@pytest.fixture(scope="module")
def whole(xtts: Any, folder: Path) -> Callable[..., Pcm]:
    """The library's own stream in one piece, with the engine's seed."""
    model = load_voice(str(folder))

    def run(text: str, speaker: str = "Anna Alt", language: str = "en", speed: float = 1.0) -> Pcm:
        told, config = model.speaker_manager.speakers[speaker], model.config
        with torch.random.fork_rng([]):
            torch.manual_seed(zlib.crc32(text.encode()))
            (pcm,) = model.inference_stream(
                text,
                language,
                told["gpt_cond_latent"],
                told["speaker_embedding"],
                stream_chunk_size=0,
                temperature=config.temperature,
                top_k=config.top_k,
                top_p=config.top_p,
                repetition_penalty=config.repetition_penalty,
                speed=speed,
            )
        return pcm.numpy()

    return run


# ---- audio


@pytest.mark.parametrize("text", TEXTS)
def test_chunks_join_to_the_whole_with_its_last_sample(
    engine: Tts, whole: Callable[..., Pcm], text: str
) -> None:
    chunks, said = say(engine, clause(text)), whole(text)
    expected, _ = trim(said, engine.rate)
    assert engine.rate == 24_000
    assert said.std() > 0.005 and len(expected) > 0.9 * len(said)
    assert joined(chunks).shape == expected.shape
    assert np.abs(joined(chunks) - expected).max() < 1e-5
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    for before, after in pairwise(chunks):
        assert after.start == before.start + len(before.pcm)


@settings(max_examples=8)
@example("'ac")
@given(st.text("abcdefghij ,.'ß", min_size=1, max_size=60))
def test_any_text_at_any_speed_is_said_as_in_one_decode(
    folder: Path, whole: Callable[..., Pcm], text: str
) -> None:
    engine, said = open_voice(folder, speed=SPEED), text.strip()
    audio = joined(say(engine, clause(said)))
    if any(map(str.isalnum, said)):
        try:
            in_one = whole(said, speed=SPEED)
        except RuntimeError as error:  # the library cannot say a single token that fast
            assert "should be greater than 0" in str(error) and len(audio) < 2 * TOKEN
            return
        expected, _ = trim(in_one, engine.rate)
        assert audio.shape == expected.shape
        assert np.abs(audio - expected).max(initial=0) < 1e-5
    else:
        assert not len(audio)


def test_chunks_grow_and_the_first_needs_few_tokens(engine: Tts) -> None:
    steps = engine.synthesize(clause(TEXTS[2]))
    first = next(steps)
    assert first is not None and 4 * TOKEN < len(first.pcm) < 10 * TOKEN
    lengths = [len(first.pcm), *(len(chunk.pcm) for chunk in steps if chunk)]
    assert len(lengths) >= 3
    # The last ones are what is left, and what the trimmer held back.
    assert all(b > 1.5 * a for a, b in pairwise(lengths[:-2]))


def test_a_clause_always_sounds_the_same(folder: Path, engine: Tts) -> None:
    check_same(engine, open_voice(folder))


def test_a_number_that_has_no_name_is_said_in_parts(engine: Tts) -> None:
    assert len(joined(say(engine, clause("9" * 240)))) > 10 * TOKEN


# ---- voices


def test_speakers_go_by_name_and_speak_every_language(
    folder: Path, engine: Tts, whole: Callable[..., Pcm]
) -> None:
    assert (list(engine.voices()), engine.voice, engine.language()) == (
        ["Anna Alt", "Berta Bass"],
        "Anna Alt",
        "en",
    )
    german = open_voice(folder, voice="Berta Bass@de")
    assert (german.voice, german.language(), german.language("Anna Alt")) == (
        "Berta Bass@de",
        "de",
        "en",
    )
    expected, _ = trim(whole("na so was", "Berta Bass", "de"), engine.rate)
    for chunks in (
        say(german, clause("na so was")),
        say(engine, clause("na so was"), german.voice),
    ):
        assert np.abs(joined(chunks) - expected).max() < 1e-5
    assert not np.array_equal(joined(say(engine, clause("na so was")))[:2000], expected[:2000])
    assert open_voice(folder, voice="@de").voice == "Anna Alt@de"


@pytest.mark.parametrize(
    ("voice", "says", "hint"),
    [
        ("Ana Alt", "no speaker called 'Ana Alt'", "'Anna Alt'"),
        ("zzzz", "no speaker called 'zzzz'", "Anna Alt, Berta Bass"),
        ("Anna Alt@xx", "does not speak 'xx'", "en, es, fr"),
    ],
)
def test_a_voice_that_there_is_not(engine: Tts, voice: str, says: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        engine.check_voice(voice)
    assert hint in caught.value.hint


def test_a_language_that_needs_another_package_says_so(
    engine: Tts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypinyin", None)
    with pytest.raises(EngineError, match=r"cannot read 'zh-cn' here: .*pypinyin"):
        engine.check_voice("Anna Alt@zh-cn")


def record(path: Path, seconds: float, hertz: float = 150.0, rate: int = 44_100) -> Path:
    at = np.arange(int(seconds * rate)) / rate
    with WavWriter(path, rate) as file:
        file.write((0.3 * np.sin(2 * np.pi * hertz * at) * (1 + np.sin(9 * at)) / 2).astype("f4"))
    return path


def test_a_recording_is_a_voice(folder: Path, engine: Tts, tmp_path: Path) -> None:
    low, high = (record(tmp_path / f"{hertz}.wav", 7, hertz) for hertz in (120, 800))
    mine = open_voice(folder, voice=f"{low}@de")
    assert (mine.voice, mine.language(), list(mine.voices())) == (
        "120@de",
        "de",
        ["120", "Anna Alt", "Berta Bass"],
    )
    said = [
        joined(say(voice, clause("hello")))[:3000]
        for voice in (
            open_voice(folder, voice=str(low)),
            open_voice(folder, voice=str(high)),
            engine,
        )
    ]
    assert not any(np.array_equal(a, b) for a, b in pairwise([*said, said[0]]))
    with pytest.raises(ConfigError, match="no speaker called"):
        mine.check_voice(str(high))  # what is configured may be a file, what a client names not


@pytest.mark.parametrize(
    ("seconds", "says"), [(None, "does not exist"), (1, "holds 1.0 s"), (0, "holds only silence")]
)
def test_a_recording_that_is_of_no_use(
    folder: Path, tmp_path: Path, seconds: float | None, says: str
) -> None:
    path = tmp_path / "me.wav"
    if seconds is not None:
        record(path, seconds or 5, hertz=150 if seconds else 0)
    with pytest.raises(AudioError, match=says) as caught:
        open_voice(folder, voice=str(path))
    assert caught.value.hint


# ---- mistakes


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.mark.parametrize("damage", ["", "hello\n" * 99, "[1, 2]", "cut"])
@pytest.mark.parametrize("file", ["config.json", "model.pth", "speakers_xtts.pth", "vocab.json"])
def test_a_damaged_voice_is_one_clear_line(copy: Path, file: str, damage: str) -> None:
    content = (copy / file).read_bytes()
    (copy / file).write_bytes(content[: len(content) // 2] if damage == "cut" else damage.encode())
    with pytest.raises(ModelCorrupt) as caught:
        open_voice(copy)
    check_line(caught.value, says=str(copy))


def test_speakers_that_are_none(copy: Path) -> None:
    torch.save({"anna": torch.zeros(3)}, copy / "speakers_xtts.pth")
    with pytest.raises(ModelCorrupt) as caught:
        open_voice(copy)
    check_line(caught.value, says=str(copy))


def test_files_that_are_missing(copy: Path, tmp_path: Path) -> None:
    (copy / "speakers_xtts.pth").unlink()
    with pytest.raises(ConfigError, match="no speakers of its own") as none:
        open_voice(copy)
    check_line(none.value, says=str(copy))
    assert open_voice(copy, voice=str(record(tmp_path / "me.wav", 6))).voice == "me"
    for file, says in (("vocab.json", "vocab.json is missing"), ("model.pth", "no weights")):
        (copy / file).unlink()
        with pytest.raises(ModelNotFound) as caught:
            open_voice(copy)
        check_line(caught.value, says=says)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(EngineError, match="finds no cuda device") as caught:
        open_voice(folder, device="cuda")
    assert "tts.device" in caught.value.hint


# ---- the licence


@pytest.fixture
def home(vits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where nothing has been accepted, and nothing can be fetched."""
    monkeypatch.setenv("TTS_HOME", str(tmp_path))
    monkeypatch.delenv("COQUI_TOS_AGREED", raising=False)
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nothing listens
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "tts" / XTTS.replace("/", "--")


def fetch() -> EngineError:
    with pytest.raises(EngineError) as caught:
        coqui(TtsConfig(engine="coqui", model=XTTS))
    return caught.value


def test_where_nobody_can_be_asked_the_licence_is_shown(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    error = fetch()
    check_line(error, says="under the CPML, for uses that are not commercial: https://")
    assert "COQUI_TOS_AGREED=1" in error.hint
    assert not home.exists()
    monkeypatch.setenv("COQUI_TOS_AGREED", "1")
    assert "could not be fetched" in fetch().message


class Terminal:
    """Where somebody types."""

    def __init__(self, typed: str) -> None:
        self.typed, self.shown = typed, ""

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.typed

    def write(self, text: str) -> None:
        self.shown += text

    def flush(self) -> None:
        pass


def test_on_a_terminal_it_is_accepted_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for typed in ("n\n", ""):
        terminal = Terminal(typed)
        monkeypatch.setattr("sys.stdin", terminal)
        monkeypatch.setattr("sys.stderr", terminal)
        assert "was not accepted" in fetch().message
        assert "CPML" in terminal.shown and "https://" in terminal.shown
        assert not home.exists()
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert "could not be fetched" in fetch().message
    assert (home / "tos_agreed.txt").is_file()
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert "could not be fetched" in fetch().message  # it was accepted
