"""The second recogniser: voices made from human recordings, replies as we speak them, bad input."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jiwer
import numpy as np
import pytest

from voiceloop.asr.sphinx import DICTIONARY, LANGUAGE, Sphinx, sphinx
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import Resampler, silence
from voiceloop.bundled import bundled
from voiceloop.config import AsrConfig, TtsConfig
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound
from voiceloop.tts.espeak import espeak
from voiceloop.types import Clause, Pcm

pytestmark = pytest.mark.models

QUESTIONS = (
    "What is the capital of France?",
    "Tell me a joke.",
    "What is 7 times 6?",
    "Set a timer for 5 minutes.",
    "What time is it?",
    "Who wrote Hamlet?",
)
REPLIES = (
    "The capital of Norway is Oslo.",
    "I set a timer for 10 minutes.",
    "A snake is a reptile.",
    "The moon goes around the earth once a month and has no air.",
)


@pytest.fixture(scope="module")
def engine() -> Sphinx:
    found = sphinx(AsrConfig(engine="sphinx"))
    assert isinstance(found, Sphinx)
    return found


def errors(engine: Sphinx, texts: tuple[str, ...], sounds: list[Pcm]) -> float:
    """Word error rate without regard to case and marks; numbers as digits."""
    transform = jiwer.Compose(
        [jiwer.ToLowerCase(), jiwer.RemovePunctuation(), jiwer.ReduceToListOfListOfWords()]
    )
    heard = [" ".join(word.text for word in engine.transcribe(pcm, final=True)) for pcm in sounds]
    return jiwer.wer(
        list(texts), heard, reference_transform=transform, hypothesis_transform=transform
    )


@pytest.mark.parametrize("voice", ["slt", "rms", "awb"])
def test_voices_made_from_human_recordings_are_understood(
    engine: Sphinx, voice: str, tmp_path: Path, require_program: Callable[[str], Path]
) -> None:
    program = require_program("flite")
    sounds: list[Pcm] = []
    for text in QUESTIONS:
        out = tmp_path / "said.wav"
        subprocess.run([program, "-voice", voice, "-t", text, "-o", out], check=True)
        with AudioFile(out) as file:
            sounds.append(np.concatenate([*file.blocks(), silence(3200)]))
    assert errors(engine, QUESTIONS, sounds) <= 0.15


def test_replies_are_understood_as_our_own_synthesis_speaks_them(engine: Sphinx) -> None:
    voice = espeak(TtsConfig())
    sounds: list[Pcm] = []
    for text in REPLIES:
        chunks = voice.synthesize(Clause(1, 0, text, text, last=True))
        pcm = np.concatenate([chunk.pcm for chunk in chunks if chunk])
        resampler = Resampler(voice.rate, 16_000)
        sounds.append(
            np.concatenate((silence(3200), resampler.feed(pcm), resampler.flush(), silence(3200)))
        )
    assert errors(engine, REPLIES, sounds) <= 0.2


def test_words_are_written_forms_in_order_within_the_window(engine: Sphinx) -> None:
    voice = espeak(TtsConfig())
    text = REPLIES[1]
    pcm = np.concatenate(
        [chunk.pcm for chunk in voice.synthesize(Clause(1, 0, text, text, last=True)) if chunk]
    )
    resampler = Resampler(voice.rate, 16_000)
    pcm = np.concatenate((silence(3200), resampler.feed(pcm), resampler.flush(), silence(3200)))
    words = engine.transcribe(pcm, final=True)
    assert words[0].text == "I" and words[-1].text == "minutes."
    times = [time for word in words for time in (word.start, word.end)]
    assert times == sorted(times) and 0 <= times[0] and times[-1] <= len(pcm) / 16_000
    assert all(0 <= word.probability <= 1 for word in words)
    again = engine.transcribe(pcm, final=False)
    assert [word.text for word in again] == [word.text for word in words]
    assert [word.end for word in again] == pytest.approx([word.end for word in words], abs=0.03)


@pytest.mark.parametrize("pcm", [silence(0), silence(16_000), np.full(100, 1e-5, np.float32)])
def test_nothing_is_heard_in_silence(engine: Sphinx, pcm: Pcm) -> None:
    assert tuple(engine.transcribe(pcm, final=True)) == ()


def test_a_few_samples_are_too_little_to_hear_a_word_in(engine: Sphinx) -> None:
    assert tuple(engine.transcribe(np.full(100, 0.5, np.float32), final=True)) == ()


@pytest.mark.parametrize("file", [LANGUAGE, DICTIONARY])
@pytest.mark.parametrize("damage", ["missing", "empty", "text"])
def test_a_damaged_model_is_one_clear_line(tmp_path: Path, file: str, damage: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(bundled("models/starter/sphinx"), folder)
    if damage == "missing":
        (folder / file).unlink()
    else:
        (folder / file).write_text("" if damage == "empty" else "hello\n" * 99)
    with pytest.raises(ModelCorrupt, match=str(folder)) as caught:
        sphinx(AsrConfig(engine="sphinx", model=str(folder)))
    assert caught.value.hint and "\n" not in caught.value.message


def test_a_folder_that_is_not_there_is_one_clear_line() -> None:
    with pytest.raises(ModelNotFound, match="nowhere"):
        sphinx(AsrConfig(engine="sphinx", model="./nowhere"))


def test_only_english_is_known() -> None:
    with pytest.raises(ConfigError, match="'de'"):
        sphinx(AsrConfig(engine="sphinx", language="de"))
    detecting = sphinx(AsrConfig(engine="sphinx", language="auto"))
    assert detecting.detect_language(np.zeros(16_000, np.float32)) == ("en", 1.0)


def test_without_the_extra_the_way_to_install_it_is_named() -> None:
    code = (
        "import sys; sys.modules['pocketsphinx'] = None\n"
        "from voiceloop.asr.sphinx import sphinx; from voiceloop.config import AsrConfig\n"
        "from voiceloop.errors import MissingExtra\n"
        "try: sphinx(AsrConfig())\n"
        "except MissingExtra as error: print(error.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], text=True, capture_output=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert "-e '.[sphinx]'" in done.stdout
