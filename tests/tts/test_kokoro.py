# ruff: noqa: RUF001
"""Kokoro with a tiny model of the same inputs and outputs: its phonemes, voices and errors."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.tts.conftest import KOKORO_LONGEST, KOKORO_SOUND
from tests.tts.saying import check_line, clause, joined, say
from voiceloop.catalog.names import PIPER
from voiceloop.engines import Tts
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.espeak import phonemes
from voiceloop.tts.kokoro import TOKENS, kokoro

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def folder(kokoro_folder: Path) -> Path:
    return kokoro_folder


def open_voice(folder: Path, **settings: object) -> Tts:
    return kokoro(TtsConfig(engine="kokoro", model=str(folder), **settings))  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def engine(folder: Path) -> Tts:
    return open_voice(folder)


def test_phonemes_keep_the_marks_between_them() -> None:
    assert phonemes("Hello there, how are you?", "en-us") == "həlˈoʊ ðˈɛɹ, hˈaʊ ɑːɹ juː?"
    assert phonemes("Yes... it is: three", "en-gb") == "jˈɛs... ɪt ˈɪz: θɹˈiː"
    assert phonemes("3.5 e-mails", "en-us").startswith("θɹˈiː pɔɪnt fˈaɪv")
    assert phonemes("Wo ist die Katze?", "de") == "vˌoː ɪst diː kˈatsə?"
    assert phonemes("...", "en-us") == "..."


def test_all_that_english_is_made_of_has_a_token() -> None:
    said = phonemes(
        "The quick brown fox jumps over the lazy dog; she judged a measured church.", "en-us"
    )
    assert not set(said) - set(TOKENS) - {"r"}
    assert len(TOKENS) == 114 and max(TOKENS.values()) == 177
    assert len(set(TOKENS.values())) == len(TOKENS)


def test_a_clause_is_what_the_model_makes_of_its_phonemes(engine: Tts) -> None:
    text = "Hello there, how are you?"
    (chunk,) = say(engine, clause(text))
    assert (chunk.rate, chunk.start, chunk.last) == (24_000, 0, True)
    tokens = len(phonemes(text, "en-us")) + 2  # silence stands at both ends
    assert abs(len(chunk.pcm) - tokens * KOKORO_SOUND / 2) < KOKORO_SOUND
    assert np.array_equal(chunk.pcm, joined(say(engine, clause(text, index=3))))
    assert not np.array_equal(chunk.pcm, joined(say(engine, clause(text), "ff_siwis")))


def test_what_is_too_loud_is_cut_at_full_scale(folder: Path, tmp_path: Path) -> None:
    loud = Path(shutil.copytree(folder, tmp_path / "loud"))
    (loud / "voices-v1.0.bin").unlink()
    (loud / "voices").mkdir()
    np.full((KOKORO_LONGEST, 256), 4, np.float32).tofile(loud / "voices" / "af_heart.bin")
    sound = joined(say(open_voice(loud), clause("hello there")))
    assert np.abs(sound).max() == 1.0


def test_a_long_text_is_said_in_parts_a_step_each(engine: Tts) -> None:
    text = " ".join(["several words of a clause that nobody ends,"] * 9)
    chunks = say(engine, clause(text))
    assert len(chunks) > 6
    assert abs(len(joined(chunks)) / (KOKORO_SOUND / 2) / len(phonemes(text, "en-us")) - 1) < 0.1
    assert len(joined(say(engine, clause("a" * 500)))) > 100 * KOKORO_SOUND / 2


def test_voices_tell_their_language(folder: Path, engine: Tts) -> None:
    assert list(engine.voices()) == ["af_heart", "bm_lewis", "ff_siwis"]
    assert (engine.voice, engine.language(), engine.language("ff_siwis")) == (
        "af_heart",
        "en-us",
        "fr-fr",
    )
    assert open_voice(folder, voice="bm_lewis").language() == "en-gb"
    for name, hint in (("af_hart", "'af_heart'"), ("jf_alpha", "")):
        with pytest.raises(ConfigError, match=f"no voice called '{name}'") as caught:
            engine.check_voice(name)
        assert hint in caught.value.hint


def test_a_model_of_the_hub_has_a_file_for_each_voice(
    folder: Path, engine: Tts, tmp_path: Path
) -> None:
    for name in ("onnx", "voices"):
        (tmp_path / name).mkdir()
    shutil.copy(folder / "kokoro-v1.0.onnx", tmp_path / "onnx" / "model_quantized.onnx")
    for voice in ("af_heart", "jf_alpha"):
        style = np.full((KOKORO_LONGEST, 256), 0.5, np.float32)
        style.tofile(tmp_path / "voices" / f"{voice}.bin")
    found, said = open_voice(tmp_path), clause("hello there")
    assert list(found.voices()) == ["af_heart"]
    assert np.array_equal(joined(say(found, said)), joined(say(engine, said)))


# ---- mistakes


def test_what_is_missing_is_named(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    shutil.copy(copy / "kokoro-v1.0.onnx", copy / "other.onnx")
    cases = [
        (str(tmp_path / "nowhere"), "there is no folder"),
        (str(copy / "other.onnx"), "other.onnx is a file, not the folder of a model"),
        (str(copy), "2 models"),
        (PIPER, f"{PIPER} is a voice of Piper, and a model of Kokoro is needed"),
    ]
    for model, says in cases:
        with pytest.raises(ModelNotFound) as caught:
            kokoro(TtsConfig(engine="kokoro", model=model))
        check_line(caught.value, says=says)
    (copy / "other.onnx").unlink()
    (copy / "voices-v1.0.bin").unlink()
    with pytest.raises(ModelNotFound) as caught:
        open_voice(copy)
    check_line(caught.value, says="no voices")


@pytest.mark.parametrize("file", ["kokoro-v1.0.onnx", "voices-v1.0.bin"])
def test_a_damaged_file_is_one_clear_line(folder: Path, tmp_path: Path, file: str) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    content = (copy / file).read_bytes()
    half = bytearray(content)
    half[len(half) // 3 : len(half) // 2] = bytes(len(half) // 2 - len(half) // 3)
    (copy / file).write_bytes(
        bytes(half) if file.endswith(".bin") else content[: len(content) // 2]
    )
    with pytest.raises(ModelCorrupt) as caught:
        open_voice(copy)
    check_line(caught.value, says=str(copy))
