"""The real Coqui TTS with tiny random voices: the same audio sooner, timed words, clear errors."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tts.conftest import HOP, QUIET, MakeVoice, change_config, open_voice
from tests.tts.saying import TEXTS, check_line, check_same, clause, joined, say
from voiceloop.engines import Tts
from voiceloop.errors import ConfigError, EngineError, ModelCorrupt, ModelNotFound
from voiceloop.placement import BUILDING
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.coqui import coqui
from voiceloop.tts.delivery import FIRST, trim, windows
from voiceloop.types import Pcm

pytestmark = pytest.mark.models

FAST = 1.7


@contextmanager
def counted(vits: Any) -> Iterator[list[int]]:
    """The frames of each run of a decoder."""
    runs: list[int] = []

    def note(module: Any, given: Any, out: Any) -> None:
        if isinstance(module, vits.HifiganGenerator):
            runs.append(given[0].shape[-1])

    handle = torch.nn.modules.module.register_module_forward_hook(note)
    try:
        yield runs
    finally:
        handle.remove()


@pytest.fixture(scope="module")
def engine(voice: Path) -> Tts:
    return open_voice(voice)


@pytest.fixture(scope="module")
def quiet_voice(make_voice: MakeVoice) -> Path:
    return make_voice(peak=QUIET)


@pytest.fixture(scope="module")
def fast(voice: Path) -> Tts:
    return open_voice(voice, speed=FAST)


@pytest.fixture(scope="module")
def reference(vits: Any, voice: Path) -> Callable[..., dict[str, Any]]:
    """The library's own inference in one piece, weight norm and all, with the engine's noise."""
    return inference(vits, voice)


def inference(vits: Any, folder: Path) -> Callable[..., dict[str, Any]]:
    from TTS.config import load_config  # pyright: ignore[reportMissingImports]

    config = load_config(folder / "config.json")
    model = vits.Vits(config)
    model.load_checkpoint(config, folder / "model.pth", eval=True)

    def run(text: str, *, speed: float = 1.0, speaker: int | None = None) -> dict[str, Any]:
        model.length_scale = 1 / speed
        ids = torch.tensor([model.tokenizer.text_to_ids(text, language="en")])
        given = {"speaker_ids": None if speaker is None else torch.tensor([speaker])}
        with torch.random.fork_rng([]):
            torch.manual_seed(zlib.crc32(text.encode()))
            return model.inference(ids, given)

    return run


def full(run: Callable[..., dict[str, Any]], text: str, **settings: Any) -> Pcm:
    return run(text, **settings)["model_outputs"][0, 0].numpy()


# ---- audio


@pytest.mark.parametrize("text", TEXTS)
def test_chunks_join_to_what_one_decode_gives(engine: Tts, reference: Any, text: str) -> None:
    chunks = say(engine, clause(text))
    whole = full(reference, text)
    expected, _ = trim(whole, engine.rate)
    assert 0.1 < np.abs(whole).max() < 0.99 and whole.std() > 0.03
    assert joined(chunks).shape == expected.shape
    assert np.abs(joined(chunks) - expected).max() < 1e-4
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    for before, after in pairwise(chunks):
        assert after.start == before.start + len(before.pcm)
    assert len(chunks) == len(list(windows(len(whole) // HOP)))


def test_windows_without_sound_give_no_chunks(vits: Any, quiet_voice: Path) -> None:
    engine, run = open_voice(quiet_voice), inference(vits, quiet_voice)
    for text in TEXTS[1:]:
        steps = list(engine.synthesize(clause(text)))
        chunks = [chunk for chunk in steps if chunk is not None]
        assert None in steps[1:]
        assert all(len(chunk.pcm) for chunk in chunks[:-1])
        expected, _ = trim(full(run, text), engine.rate)
        assert np.abs(joined(chunks) - expected).max() < 1e-6


def test_a_clause_without_sound_has_no_pause_but_its_words(quiet_voice: Path) -> None:
    (chunk,) = say(open_voice(quiet_voice), clause("hi.", last=False))
    assert (len(chunk.pcm), len(chunk.words), chunk.last) == (0, 1, True)


@settings(max_examples=10)
@given(st.text("abcdefghij ,.", min_size=1, max_size=60))
def test_any_text_at_any_speed_is_said_as_in_one_decode(
    fast: Tts, reference: Any, text: str
) -> None:
    engine, speed, said = fast, FAST, text.strip()
    chunks = say(engine, clause(said))
    if not any(map(str.isalnum, said)):
        assert not len(joined(chunks))
        return
    expected, _ = trim(full(reference, said, speed=speed), engine.rate)
    assert joined(chunks).shape == expected.shape
    assert np.abs(joined(chunks) - expected).max(initial=0) < 1e-4


def test_the_first_chunk_comes_when_one_short_window_is_decoded(vits: Any, engine: Tts) -> None:
    frames = sum(len(chunk.pcm) for chunk in say(engine, clause(TEXTS[2]))) / HOP
    with counted(vits) as runs:
        steps = engine.synthesize(clause(TEXTS[2]))
        assert next(steps) is None
        assert runs == []  # the clause is encoded; nothing is decoded
        chunk = next(steps)
        assert chunk is not None and 0 < len(chunk.pcm) <= FIRST * HOP
        assert len(runs) == 1 and runs[0] < frames / 5
        steps.close()


def test_a_clause_always_sounds_the_same(voice: Path, engine: Tts) -> None:
    check_same(engine, open_voice(voice))


# ---- words


@pytest.mark.parametrize("text", TEXTS[1:])
@pytest.mark.parametrize("quiet", [False, True])
def test_a_word_sounds_as_long_as_the_durations_of_its_letters(
    vits: Any, voice: Path, quiet_voice: Path, quiet: bool, text: str
) -> None:
    folder = quiet_voice if quiet else voice
    engine, told = open_voice(folder), inference(vits, folder)(text)
    trimmed, cut = trim(told["model_outputs"][0, 0].numpy(), engine.rate)
    assert (cut > 0) == quiet and len(trimmed)
    ends = [0, *(told["durations"].flatten().cumsum(0) * HOP).int().tolist()]
    chunks = say(engine, clause(text))
    length = len(joined(chunks))
    times = [word for chunk in chunks for word in chunk.words]
    at = 0
    for word, spoken in zip(times, text.split(), strict=True):
        letters = len(spoken.rstrip(",.:?"))
        # A blank stands before each character and behind the last.
        start, end = ends[2 * at], ends[2 * (at + letters) + 1]
        assert word.start == min(length, max(0, start - cut))
        assert word.end == min(length, max(0, end - cut))
        at += len(spoken) + 1


def test_words_of_a_phrase_that_is_said_as_one_are_told_apart(
    make_voice: MakeVoice, require_program: Callable[[str], Path]
) -> None:
    require_program("espeak-ng")
    folder = make_voice(use_phonemes=True, phonemizer="espeak", phoneme_language="en-us")
    text = "Out of the blue, in the house of the rising sun."
    chunks = say(open_voice(folder), clause(text))
    times = [word for chunk in chunks for word in chunk.words]
    assert len(times) == len(text.split())
    assert all(word.end > word.start for word in times)
    assert all(a.end <= b.start for a, b in pairwise(times))
    blue, inn = times[3], times[4]
    assert inn.start > blue.end  # the comma between them is nobody's


# ---- kinds of voices


def test_a_voice_is_built_while_no_other_model_is(
    vits: Any, voice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers changes the type of all new weights of the process for as long as it builds."""
    seen, begin = list[bool](), vits.Vits.__init__

    def noted(self: Any, *given: Any, **options: Any) -> None:
        seen.append(BUILDING.locked())
        begin(self, *given, **options)

    monkeypatch.setattr(vits.Vits, "__init__", noted)
    open_voice(voice)
    assert seen == [True] and not BUILDING.locked()


def test_a_voice_of_several_speakers_has_them_by_name(vits: Any, make_voice: MakeVoice) -> None:
    args = {"use_speaker_embedding": True, "speaker_embedding_channels": 4}
    folder = make_voice(args, use_speaker_embedding=True, speakers=["anna", "berta"])
    run = inference(vits, folder)
    names = ("anna", "berta")
    anna, berta = (open_voice(folder, voice=name) for name in names)
    for engine, speaker in ((anna, 0), (berta, 1), (open_voice(folder), 0)):
        expected, _ = trim(full(run, TEXTS[2], speaker=speaker), engine.rate)
        assert np.abs(joined(say(engine, clause(TEXTS[2]))) - expected).max() < 1e-4
        assert np.abs(joined(say(anna, clause(TEXTS[2]), names[speaker])) - expected).max() < 1e-4
    assert (anna.voice, berta.voice, list(anna.voices())) == (*names, list(names))
    with pytest.raises(ConfigError, match="speaker called 'bertha'") as caught:
        open_voice(folder, voice="bertha")
    assert "'berta'" in caught.value.hint


def test_a_table_of_speakers_is_found_beside_the_weights(
    make_voice: MakeVoice, tmp_path: Path
) -> None:
    args = {"use_speaker_embedding": True, "speaker_embedding_channels": 4}
    made = make_voice(args, use_speaker_embedding=True, speakers=["anna", "berta"])
    folder = tmp_path / "voice"
    shutil.copytree(made, folder)
    (folder / "speaker_ids.json").write_text('{"berta": 0, "anna": 1}')
    elsewhere = "/where/it/was/trained/speaker_ids.json"
    change_config(folder, speakers=[], speakers_file=elsewhere, args={"speakers_file": elsewhere})
    said = clause(TEXTS[1])
    assert np.array_equal(
        joined(say(open_voice(folder, voice="berta"), said)),
        joined(say(open_voice(made, voice="anna"), said)),
    )


def test_a_voice_may_be_decoded_at_a_higher_rate_than_it_is_encoded_at(
    vits: Any, make_voice: MakeVoice
) -> None:
    folder = make_voice({"encoder_sample_rate": 11_025})
    engine, told = open_voice(folder), inference(vits, folder)(TEXTS[1])
    chunks = say(engine, clause(TEXTS[1]))
    expected, cut = trim(told["model_outputs"][0, 0].numpy(), engine.rate)
    assert np.abs(joined(chunks) - expected).max() < 1e-4
    last = chunks[-1].words[-1]
    frames = told["durations"].flatten()[:-2].sum()  # without the mark at the end
    assert last.end == min(len(joined(chunks)), int(frames) * HOP * 2 - cut)


def test_a_voice_tells_its_language(make_voice: MakeVoice, voice: Path) -> None:
    assert open_voice(voice).language() == "en", "as the library takes one that does not say"
    folder = make_voice(phoneme_language="de")
    assert open_voice(folder).language() == "de"


def test_a_voice_that_was_downloaded_is_taken_by_its_name(
    voice: Path, engine: Tts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTS_HOME", str(tmp_path))
    shutil.copytree(voice, tmp_path / "tts" / "tts_models--en--ljspeech--vits")
    found = coqui(TtsConfig(engine="coqui"))
    assert found.name == "coqui tts_models/en/ljspeech/vits"
    assert np.array_equal(
        joined(say(found, clause(TEXTS[1]))), joined(say(engine, clause(TEXTS[1])))
    )


# ---- mistakes


@pytest.fixture
def copy(voice: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(voice, folder)
    return folder


def test_a_folder_that_is_not_there_or_holds_no_voice(copy: Path, voice: Path) -> None:
    cases = [(copy / "nowhere", "does not exist"), (copy / "config.json", "is not a folder")]
    for path, says in cases:
        with pytest.raises(ModelNotFound) as caught:
            open_voice(path)
        check_line(caught.value, says=says)
    shutil.copy(copy / "model.pth", copy / "speakers.pth")
    (copy / "model.pth").rename(copy / "checkpoint_1.pth")
    open_voice(copy)  # the only weights there are, whatever their name
    shutil.copy(copy / "checkpoint_1.pth", copy / "checkpoint_2.pth")
    with pytest.raises(ModelNotFound) as caught:
        open_voice(copy)
    check_line(caught.value, says="2 files of weights")
    for file, says in (("checkpoint_*.pth", "no weights"), ("config.json", "no config.json")):
        for path in copy.glob(file):
            path.unlink()
        with pytest.raises(ModelNotFound) as caught:
            open_voice(copy)
        check_line(caught.value, says=says)


@pytest.mark.parametrize("damage", ["", "hello\n" * 99, "[1, 2]", '{"model": "unheard_of"}', "cut"])
@pytest.mark.parametrize("file", ["config.json", "model.pth"])
def test_a_damaged_voice_is_one_clear_line(copy: Path, file: str, damage: str) -> None:
    content = (copy / file).read_bytes()
    (copy / file).write_bytes(content[: len(content) // 2] if damage == "cut" else damage.encode())
    with pytest.raises(ModelCorrupt) as caught:
        open_voice(copy)
    check_line(caught.value, says=str(copy))


def test_weights_that_do_not_fit_or_are_not_numbers(copy: Path) -> None:
    state = torch.load(copy / "model.pth")
    state["model"]["flow.flows.0.post.bias"].fill_(torch.nan)
    torch.save(state, copy / "model.pth")
    with pytest.raises(ModelCorrupt, match="not numbers"):
        open_voice(copy)
    change_config(copy, args={"hidden_channels": 16})
    with pytest.raises(ModelCorrupt, match="cannot be used"):
        open_voice(copy)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"args": {"use_d_vector_file": True}}, "from recordings"),
        ({"args": {"use_language_embedding": True}}, "mixes languages"),
        ({"use_phonemes": True, "phonemizer": "gruut"}, "gruut"),
    ],
)
def test_a_voice_that_cannot_be_used_says_why(
    copy: Path, settings: dict[str, Any], says: str
) -> None:
    change_config(copy, **settings)
    with pytest.raises(EngineError) as caught:
        open_voice(copy)
    check_line(caught.value, says=says)


def test_a_model_of_another_type_is_told_from_a_damaged_one(copy: Path) -> None:
    from TTS.tts.configs.tacotron2_config import (  # pyright: ignore[reportMissingImports]
        Tacotron2Config,
    )

    Tacotron2Config().save_json(copy / "config.json")
    with pytest.raises(EngineError) as caught:
        open_voice(copy)
    check_line(caught.value, says="of type tacotron2")


def test_a_voice_that_reads_phonemes_needs_espeak_ng(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_config(copy, use_phonemes=True, phonemizer="espeak", phoneme_language="en-us")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError) as caught:
        open_voice(copy)
    check_line(caught.value, says="espeak-ng is not installed")


def test_one_speaker_goes_without_a_name(voice: Path) -> None:
    with pytest.raises(ConfigError, match="'anna'") as caught:
        open_voice(voice, voice="anna")
    assert "only one" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tts_models/en/ljspeech/vitz", "'tts_models/en/ljspeech/vits'"),
        ("tts_models/multilingual/multi-dataset/xtts_v3", "multi-dataset/xtts_v2'"),
        ("tts_models/multilingual/multi-dataset/your_tts", ""),
        ("nonsense", "tts_models/en/ljspeech/vits"),
    ],
)
def test_a_name_that_coqui_does_not_have(vits: Any, name: str, hint: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        coqui(TtsConfig(engine="coqui", model=name))
    check_line(caught.value, says=name)
    assert hint in caught.value.hint


def test_without_a_network_the_way_out_is_named(
    vits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTS_HOME", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # where nothing listens
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(ModelNotFound) as caught:
        coqui(TtsConfig(engine="coqui"))
    check_line(caught.value, says="could not be fetched")


MISSING = """
import sys
from tests.tts.conftest import audio_packages
from voiceloop.settings.config import TtsConfig
from voiceloop.errors import EngineError
from voiceloop.tts.coqui import coqui
for package in ("TTS", "six", "torchaudio"):
    with audio_packages():
        sys.modules[package] = None
        try:
            coqui(TtsConfig())
        except EngineError as error:
            print(f"{type(error).__name__}: {error.message}; {error.hint}")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("TTS", package)]:
        del sys.modules[name]
sys.path.insert(0, sys.argv[1])
try:
    coqui(TtsConfig())
except EngineError as error:
    print(f"{type(error).__name__}: {error.message}; {error.hint}")
"""


def test_a_package_that_is_not_there_or_does_not_fit_is_named(vits: Any, tmp_path: Path) -> None:
    unfit = "raise OSError('libcudart.so: no such file')"
    for package, code in (("torchaudio", unfit), ("torchcodec", "")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-c", MISSING, str(tmp_path)], text=True, capture_output=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    library, six, torchaudio, unfit = done.stdout.splitlines()
    assert library == six
    assert library.startswith("MissingExtra: Coqui TTS is not installed; ")
    assert library.endswith("-e '.[coqui]'")
    assert torchaudio.startswith("EngineError: Coqui TTS cannot be loaded: it needs torchaudio")
    assert unfit.startswith("EngineError: Coqui TTS cannot be loaded: libcudart.so: no such file")
    for line in (torchaudio, unfit):
        assert "pip install torchaudio torchcodec" in line
