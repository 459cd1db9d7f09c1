"""The Whisper engine on a tiny random model: the real path through CTranslate2, and its errors."""

from __future__ import annotations

import json
import logging
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import ctranslate2
import numpy as np
import pytest
from faster_whisper import WhisperModel
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from tests.asr.conftest import SPECIALS, WORDS
from voiceloop.asr import short_window, whisper_encoder
from voiceloop.asr.encoding import Windows, read_windows
from voiceloop.asr.transcript import normalise
from voiceloop.asr.whisper import Whisper, whisper
from voiceloop.asr.whisper_decoder import (
    CLOSING,
    UNLIKELY,
    Hypothesis,
    Spelling,
    WhisperDecoder,
    without_loop,
)
from voiceloop.asr.whisper_encoder import WhisperEncoder, read_weights
from voiceloop.asr.whisper_model import load, open_model
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.bench.suites import build
from voiceloop.engines import Abandoned, AsrRequest
from voiceloop.errors import ConfigError, EngineError, ModelCorrupt, OutOfMemory
from voiceloop.settings.config import AsrConfig
from voiceloop.types import Pcm

pytestmark = pytest.mark.models


def engine(folder: Path, **settings: object) -> Whisper:
    found = whisper(AsrConfig(model=str(folder), device="cpu", **settings))  # pyright: ignore
    assert isinstance(found, Whisper)
    return found


def noise(seconds: float) -> Pcm:
    rng = np.random.default_rng(3)
    return (0.1 * rng.standard_normal(int(16_000 * seconds))).astype(np.float32)


def decoded(folder: Path, pcm: Pcm, frames: int) -> list[str]:
    """The words of a plain decode of `pcm` in a window of `frames`."""
    plain = WhisperModel(str(folder), device="cpu", compute_type="float32", local_files_only=True)
    samples = frames * 160
    features = plain.feature_extractor(np.pad(pcm, (0, samples - len(pcm))))[:, :frames]
    tokenizer = plain.hf_tokenizer
    prompt = [tokenizer.token_to_id(t) for t in (*SPECIALS[1:3], SPECIALS[4], SPECIALS[8])]
    (result,) = plain.model.generate(
        plain.encode(features), [prompt], beam_size=1,
        max_length=min(448, 2 * (12 + int(np.ceil(12 * len(pcm) / 16_000)))),
    )  # fmt: skip
    return tokenizer.decode([t for t in result.sequences_ids[0] if t < 257 + WORDS]).split()


@pytest.fixture(scope="module")
def anylength(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model, said to have been trained on windows of any length."""
    copy = tmp_path_factory.mktemp("anylength") / "tiny"
    shutil.copytree(folder, copy)
    (copy / "windows.json").write_text('{"longest_s": 20, "any_length": true}')
    return copy


@pytest.mark.parametrize("seconds", [0.3, 2.0, 7.77])
def test_the_words_are_those_of_a_plain_decode_of_the_window(
    folder: Path, anylength: Path, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pcm = noise(seconds)
    steps = -(-int(16_000 * max(seconds, 0.5)) // 3200)
    full = decoded(folder, pcm, 3000)
    exact = {"compute_type": "float32"}
    monkeypatch.setattr(
        short_window, "PIVOTS", 1500
    )  # all of the silence is encoded with the speech
    wholes = [
        (engine(anylength, **exact), decoded(folder, pcm, 20 * steps)),
        (engine(folder, pad_s=0.5, **exact), full),
        (engine(folder, pad_s=30.0, **exact), full),
        (engine(folder, pad_s=None, **exact), full),
    ]
    for asr, expected in wholes:
        said = [word.text for word in asr.transcribe(AsrRequest(pcm, final=False))]
        assert said == expected[: len(said)]
        # Random weights may well loop; a loop is the only thing that is taken away.
        assert said or not expected
        assert len(said) == len(expected) or len(said) <= len(expected) - 6


def test_a_short_window_that_is_not_to_be_trusted_is_decoded_in_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pcm = noise(2.0)  # of which random weights are never sure
    monkeypatch.setattr(short_window, "PIVOTS", 1)  # so that short windows are bad
    short, full = engine(folder, pad_s=0.5), engine(folder, pad_s=None)
    # Random words may be the same; how likely they are tells their states apart.
    said = [asr.transcribe(AsrRequest(pcm, timed=True)) for asr in (short, full)]
    assert said[0] == said[1]
    said = [asr.transcribe(AsrRequest(pcm, final=False, timed=True)) for asr in (short, full)]
    assert said[0] != said[1]
    assert short.counters == {"short_windows": 1, "full_windows_after": 1, "looked_again": 0}
    assert full.counters == {"short_windows": 0, "full_windows_after": 0, "looked_again": 0}
    short.transcribe(AsrRequest(noise(29.8)))  # which is decoded in full at once
    assert short.counters == {"short_windows": 1, "full_windows_after": 1, "looked_again": 0}


@pytest.mark.parametrize("seconds", [0.5, 2.0, 29.0])
def test_what_comes_to_no_end_is_noticed_and_never_certain(folder: Path, seconds: float) -> None:
    asr = engine(folder)
    pcm = noise(seconds)  # of which random weights say all that they may
    found = asr._decoder("en").decode(asr._encode(pcm), seconds, 1)
    assert not found.ended
    assert len(found.tokens) <= min(12 + math.ceil(12 * seconds), 224)
    assert {word.probability for word in asr.transcribe(AsrRequest(pcm, final=False))} == {0.0}
    # Where it says none of its tokens but the end, it has ended.
    ended = replace(found, tokens=[], words=(), ended=True, mean=0.0)
    assert ended.trusted and not replace(ended, ended=False).trusted
    assert replace(ended, mean=UNLIKELY).trusted
    assert not replace(ended, mean=UNLIKELY - 0.01).trusted
    again = [Spelling(word, at, at + 1) for at, word in enumerate(4 * ["and", "so", "on"])]
    assert not replace(ended, words=again).trusted


@given(st.floats(0, 30))
def test_a_window_holds_what_is_said(seconds: float) -> None:
    assert Windows().frames(seconds) == 3000
    frames = Windows(20.0, any_length=True).frames(seconds)
    assert frames % 20 == 0
    assert max(0.5, seconds) - 1e-4 <= frames / 100 <= max(0.5, seconds) + 0.2001


def test_a_model_of_another_network_is_encoded_by_the_library_in_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = whisper_encoder.read_encoder

    def unreadable(path: Path) -> WhisperEncoder:
        raise OSError("no such device")

    def other(path: Path) -> WhisperEncoder:
        own = read(path)
        own._norm = (-own._norm[0], own._norm[1])
        return own

    def lacking(path: Path) -> WhisperEncoder:
        weights = read_weights(path, "encoder/")
        del weights["conv1/bias"]
        return WhisperEncoder(weights)

    def smaller(path: Path) -> WhisperEncoder:
        own = read(path)
        own.states = 750
        return own

    pcm = noise(2.0)
    for reader, told in (
        (unreadable, "no such device"),
        (other, "none of Whisper's"),
        (lacking, "has no conv1/bias"),
        (smaller, "750 states"),
    ):
        monkeypatch.setattr(whisper_encoder, "read_encoder", reader)
        caplog.clear()
        asr = engine(folder, compute_type="float32")
        (record,) = caplog.records
        assert told in record.getMessage()
        said = [word.text for word in asr.transcribe(AsrRequest(pcm, final=False))]
        assert said == decoded(folder, pcm, 3000)[: len(said)] and said
        assert asr.transcribe(AsrRequest(pcm)) and not asr.counters["short_windows"]


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"length": 3}'])
def test_what_a_folder_says_of_its_windows_is_understood_or_refused(
    folder: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "windows.json").write_text(text)
    with pytest.raises(ModelCorrupt, match=r"windows\.json"):
        read_windows(tmp_path)
    assert read_windows(folder) == Windows(30.0, any_length=False)


def test_a_window_of_any_length_is_heard() -> None:
    _, clip = build("starter", 2)  # the second is a question of little more than a second
    asr, said = whisper(AsrConfig()), clip.said
    assert said.start is not None and said.end is not None
    lengths = range(said.end - said.start, 2 * SPEECH_RATE, samples(20))
    assert lengths[0] < 1.5 * SPEECH_RATE  # from there to 1.6 s CTranslate2 has as many states
    for length in lengths:
        words = asr.transcribe(AsrRequest(clip.read(said.start, length)))
        assert " ".join(word.text for word in words) == said.text, length


def test_a_model_of_any_length_is_loaded_without_torch() -> None:
    """It takes longer to import than to hear a question."""
    program = (
        "import sys; from voiceloop.asr.whisper import whisper;"
        "from voiceloop.settings.config import AsrConfig; whisper(AsrConfig());"
        "print('torch' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "False"


def test_words_share_the_window_evenly_unless_they_are_timed(anylength: Path) -> None:
    asr, pcm = engine(anylength), noise(3.0)
    partial, final = (
        asr.transcribe(AsrRequest(pcm, final=False)),
        asr.transcribe(AsrRequest(pcm, timed=True)),
    )
    assert partial == asr.transcribe(AsrRequest(pcm)), "who asks for no times is given none"
    assert [word.text for word in partial] == [word.text for word in final]
    assert len({round(word.end - word.start, 6) for word in final}) > 1
    assert len(partial) > 1
    assert partial[0].start == 0 and partial[-1].end == pytest.approx(3.0)
    assert len({round(word.end - word.start, 6) for word in partial}) == 1
    for words in (partial, final):
        times = [time for word in words for time in (word.start, word.end)]
        assert times == sorted(times)
        assert 0 <= times[0] and times[-1] <= 3.0
        assert all(0 <= word.probability <= 1 for word in words)


def test_more_beams_are_used_for_the_final_decode_alone(folder: Path) -> None:
    greedy, beams = engine(folder, pad_s=None), engine(folder, pad_s=None, beam_size=5)
    pcm = noise(2.0)
    texts = [
        [word.text for word in asr.transcribe(AsrRequest(pcm, final=final))]
        for asr in (greedy, beams)
        for final in (False, True)
    ]
    assert texts[0] == texts[1] == texts[2]
    assert texts[3] != texts[2]


def test_numbers_are_decoded_by_beams_in_the_final_decode_alone(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    tokens = json.loads((tmp_path / "tokenizer.json").read_text())
    vocabulary = tokens["model"]["vocab"]  # "w1" becomes "1"
    tokens["model"]["vocab"] = {text.replace("Ġw", "Ġ"): id for text, id in vocabulary.items()}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokens))
    greedy, beams = engine(tmp_path, pad_s=None), engine(tmp_path, pad_s=None, beam_size=5)
    partial, final = (AsrRequest(noise(2.0), final=final) for final in (False, True))
    careful = [word.text for word in greedy.transcribe(final)]
    assert careful == [word.text for word in beams.transcribe(final)]
    assert careful != [word.text for word in greedy.transcribe(partial)]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("My number is 5577 1111.", True),
        ("416-555-0192", True),
        ("4. 1. 1. 1. 2.", True),
        ("I was born in 1984.", False),
        ("w123 w456 B12 MP3 x64", False),
    ],
)
def test_digits_in_groups_are_decoded_with_care_whatever_is_between_them(
    text: str, groups: bool
) -> None:
    words = [Spelling(word, at, at + 1) for at, word in enumerate(text.split())]
    assert Hypothesis(cast(Any, None), [], words, -0.3, 0.0, True).dictates is groups


@given(st.sampled_from(["Bye.", "Bye bye!", "See you.", "Thank you."]), st.floats(-3, 0))
def test_closings_that_are_unlikely_were_not_said_but_other_words_were(
    text: str, mean: float
) -> None:
    def spoken(text: str) -> str:
        words = [Spelling(word, at, at + 1) for at, word in enumerate(text.split())]
        found = Hypothesis(cast(Any, None), [], words, mean, 0.0, True)
        return " ".join(word.text for word in found.spoken)

    assert spoken(text) == (text if mean >= CLOSING else "")
    for more in ("Goodbye.", "Yes.", "Stop.", f"Okay {text}", f"{text} John."):
        assert spoken(more) == more


@pytest.mark.parametrize("final", [True, False])
def test_what_is_not_wanted_any_more_is_given_up_before_its_words_are_decoded(
    folder: Path, final: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(*given: object) -> None:
        raise AssertionError("it was wanted")

    monkeypatch.setattr(WhisperDecoder, "decode", decode)
    with pytest.raises(Abandoned):
        engine(folder).transcribe(AsrRequest(noise(2.0), final, wanted=lambda: False))


@pytest.mark.parametrize("pcm", [noise(0.0), np.zeros(32_000, np.float32), noise(2.0) * 1e-5])
def test_nothing_is_heard_in_silence(folder: Path, pcm: Pcm) -> None:
    assert tuple(engine(folder).transcribe(AsrRequest(pcm))) == ()


def test_a_window_longer_than_the_model_takes_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="31"):
        engine(folder).transcribe(AsrRequest(noise(31.0)))


phrases = st.lists(st.sampled_from("a b c d e f".split()), max_size=12)


def spelled(words: Sequence[str]) -> list[Spelling]:
    return [Spelling(word, i, i + 1) for i, word in enumerate(words)]


@given(phrases, st.lists(st.sampled_from("uvw"), min_size=1, max_size=4), st.integers(8, 20))
def test_a_loop_at_the_end_is_said_once(said: list[str], loop: list[str], times: int) -> None:
    kept = [word.text for word in without_loop(spelled(said + loop * times))]
    assert kept[: len(said)] == said
    assert 1 <= len(kept) - len(said) <= len(loop)


def test_repeating_oneself_a_few_times_is_no_loop() -> None:
    said = spelled("No, no, no, stop, stop, stop, stop!".split())
    assert without_loop(said) == said
    assert normalise(said[0].text) == "no"


@given(st.sampled_from(["", "ou"]), st.sampled_from(["-o", "a", "ha", "-na"]), st.integers(12, 400))
def test_a_loop_inside_a_word_is_said_once(said: str, loop: str, times: int) -> None:
    (kept,) = without_loop(spelled([said + loop * times]))
    assert kept == Spelling(said + loop, 0, 1)


@pytest.mark.parametrize("word", ["1,000,000,000", "0" * 40, "hahahaha!", "Zzzzzz", "no-no-no"])
def test_large_numbers_and_laughter_are_no_loop(word: str) -> None:
    assert without_loop(spelled([word])) == spelled([word])


# ---- loading


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no weights": lambda folder: (folder / "model.bin").unlink(),
    "no tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
    "no config": lambda folder: (folder / "config.json").unlink(),
    "cut weights": lambda folder: (folder / "model.bin").write_bytes(
        (folder / "model.bin").read_bytes()[:100_000]
    ),
    "empty weights": lambda folder: (folder / "model.bin").write_bytes(b""),
    "weights that are text": lambda folder: (folder / "model.bin").write_text("hello " * 1000),
    "broken config": lambda folder: (folder / "config.json").write_text("{"),
    "broken tokenizer": lambda folder: (folder / "tokenizer.json").write_text("{}"),
    "other tokenizer": lambda folder: Tokenizer(models.BPE()).save(str(folder / "tokenizer.json")),
    "broken preprocessor": lambda folder: (folder / "preprocessor_config.json").write_text(
        json.dumps({"feature_size": 12})
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_one_clear_line(folder: Path, tmp_path: Path, damage: str) -> None:
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    DAMAGE[damage](copy)
    with pytest.raises(ModelCorrupt) as caught:
        engine(copy)
    assert str(copy) in caught.value.message
    assert "\n" not in caught.value.message and caught.value.hint


def test_a_language_that_the_model_does_not_know_is_a_setting_to_change(folder: Path) -> None:
    for language in ("de", "klingon"):
        with pytest.raises(ConfigError, match=language):
            engine(folder, language=language)


def test_a_language_of_one_decode_is_as_if_it_were_configured(anylength: Path) -> None:
    pcm = np.random.default_rng(0).normal(0, 0.1, SPEECH_RATE).astype(np.float32)
    english, french = engine(anylength), engine(anylength, language="fr")
    assert english.languages == ("en", "fr")
    # Random words may be the same; how likely they are depends on the language that is asked for.
    own, other = (one.transcribe(AsrRequest(pcm, timed=True)) for one in (english, french))
    assert own != other
    assert english.transcribe(AsrRequest(pcm, timed=True, language="fr")) == other
    assert english.transcribe(AsrRequest(pcm, timed=True)) == own


def test_a_language_that_is_to_be_detected_is_that_of_each_decode(folder: Path) -> None:
    pcm = np.random.default_rng(0).normal(0, 0.1, SPEECH_RATE).astype(np.float32)
    asr = engine(folder, language="auto")
    code, probability = asr.detect_language(pcm)
    assert code in asr.languages and 0 < probability <= 1
    for final in (True, False):
        assert asr.transcribe(AsrRequest(pcm, final=final)) == asr.transcribe(
            AsrRequest(pcm, final=final, language=code)
        )
    long = np.tile(pcm, 40)
    assert asr.detect_language(long) == asr.detect_language(long[: 30 * SPEECH_RATE])


def test_a_language_is_detected_from_the_states_that_are_decoded(folder: Path) -> None:
    asr = engine(folder, language="auto", compute_type="float32")
    encode, encoded = asr._encode._log_mel, list[int]()
    asr._encode._log_mel = lambda pcm, frames: encoded.append(frames) or encode(pcm, frames)  # pyright: ignore
    asr.transcribe(AsrRequest(noise(1.0), final=False))
    assert len(encoded) == 1


def test_a_model_that_cannot_tell_languages_says_so(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    (copy / "config.json").write_text(json.dumps(config | {"lang_ids": []}), encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot detect"):
        engine(copy, language="auto").transcribe(AsrRequest(noise(1.0)))


def test_a_broken_gpu_library_falls_back_to_the_cpu_with_one_line(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    opened: list[tuple[str, str]] = []

    def opener(path: Path, device: str, compute_type: str) -> WhisperModel:
        opened.append((device, compute_type))
        if device == "cuda":
            raise RuntimeError("Library libcublas.so.12 is not found or cannot be loaded\nmore")
        return open_model(path, device, compute_type)

    with caplog.at_level(logging.WARNING):
        model = load(folder, AsrConfig(compute_type="float16"), opener, libraries=lambda: False)
    assert opened == [("cuda", "float16"), ("cpu", "int8")]
    assert model.model.device == "cpu"
    (record,) = caplog.records
    assert "libcublas.so.12" in record.getMessage() and "\n" not in record.getMessage()
    assert "pip install nvidia-cublas-cu12" in record.getMessage()
    caplog.clear()
    load(folder, AsrConfig(), opener, libraries=lambda: True)
    (record,) = caplog.records
    assert "pip install" not in record.getMessage()  # they are there, and something else is wrong
    with pytest.raises(EngineError, match="cannot run on the GPU") as caught:
        load(folder, AsrConfig(device="cuda"), opener, libraries=lambda: False)
    assert "pip install nvidia-cublas-cu12" in caught.value.hint


@pytest.mark.skipif(ctranslate2.get_cuda_device_count() > 0, reason="this machine has a GPU")
def test_a_gpu_that_is_asked_for_and_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(EngineError, match="cannot run on the GPU") as caught:
        whisper(AsrConfig(model=str(folder), device="cuda"))
    assert caught.value.hint.endswith("set asr.device to auto or cpu")


def test_a_model_that_does_not_fit_says_so(folder: Path) -> None:
    def opener(path: Path, device: str, compute_type: str) -> WhisperModel:
        raise RuntimeError("CUDA failed with error out of memory")

    with pytest.raises(OutOfMemory) as caught:
        load(folder, AsrConfig(device="cuda"), opener)
    assert "cpu" in caught.value.hint
