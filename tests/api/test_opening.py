"""Opening models in a program: its settings, what happens when it goes wrong, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import numpy as np
import pytest

import voiceloop
from voiceloop.api.asking import opened_places
from voiceloop.api.opening import read_settings
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.bundled import bundled
from voiceloop.errors import AudioError, ConfigError, EngineError, VoiceloopError
from voiceloop.llm.chat import ChatLlm
from voiceloop.runner import in_background
from voiceloop.settings.config import Config, LlmConfig
from voiceloop.settings.schema import Object

pytestmark = pytest.mark.real

DEMO = bundled("models/starter/demo.wav")


@pytest.fixture
def anyio_backend() -> str:
    """Models take real time."""
    return "asyncio"


def own_threads() -> list[str]:
    """Those that do not end."""
    threads = [one for one in threading.enumerate() if one.name.startswith("voiceloop")]
    for one in threads:
        one.join(5)
    return [one.name for one in threads if one.is_alive()]


# ---- settings


def test_settings_win_over_the_file_and_the_file_over_the_preset(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("timezone = 'Europe/Lisbon'\n[llm]\ntemperature = 0.25\ntop_k = 4\n")
    given = {"llm": {"temperature": 0.5}, "llm.top_p": 0.75}
    found, own = read_settings("mini", file, given)
    assert (found.preset, found.timezone) == ("mini", "Europe/Lisbon")
    assert (found.llm.temperature, found.llm.top_k, found.llm.top_p) == (0.5, 4, 0.75)
    assert found.llm.target == "smollm2-135m-instruct" and not own
    assert read_settings(None, None, {})[0] == Config()
    assert read_settings(None, found, {})[0] == found


@pytest.mark.parametrize(
    ("preset", "config", "settings", "told"),
    [
        ("best friend", None, {}, "preset"),
        (None, None, {"llm": {"temprature": 1.0}}, "llm.temprature is not a setting"),
        (None, None, {"llm": {"temperature": "hot"}}, "llm.temperature"),
        (None, None, {"llm": 3}, "llm is a section"),
        (None, None, {"voice": "anna"}, "voice is not a setting"),
        (None, "nowhere.toml", {}, "nowhere.toml"),
        ("mini", Config(), {}, "taken as it is"),
        (None, Config(), {"timezone": "UTC"}, "taken as it is"),
    ],
)
def test_wrong_settings_are_told(
    preset: str | None, config: Any, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        read_settings(preset, config, settings)
    assert caught.value.hint


def test_no_file_of_the_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "voiceloop.toml").write_text("[llm]\ntemperature = 0.25\n")
    monkeypatch.chdir(tmp_path)
    assert read_settings(None, None, {})[0] == Config()


# ---- engines of the program


class Echo(ChatLlm):
    """A language model that says what it was told."""

    name = "echo"

    class Options(Object, frozen=True):
        """Its own settings."""

        opening: str = "You said:"

    def __init__(self, config: LlmConfig, options: Options) -> None:
        super().__init__(config)
        self._options = options

    def reply(self, messages: Sequence[Any], tools: Sequence[object]) -> Iterator[str]:
        yield f"{self._options.opening} {messages[-1]['content']}"


async def test_an_engine_may_be_a_class_of_the_program() -> None:
    llm = {"engine": Echo, "skills": "none", "options": {"opening": "I heard:"}}
    async with voiceloop.open("starter", llm=llm) as loop:
        assert loop.config.llm.engine == "Echo"
        turn = await loop.ask(DEMO)
        assert turn.reply == f"I heard: {turn.said}" and turn.said
    with pytest.raises(ConfigError, match=r"llm\.options\.closing"):
        async with voiceloop.open(llm={"engine": Echo, "options": {"closing": "Bye."}}):
            pass
    assert not own_threads()


async def test_an_engine_that_cannot_be_made_is_told_and_nothing_is_left() -> None:
    def broken(config: object) -> object:
        raise EngineError("there is no robot", "build one")

    with pytest.raises(EngineError, match="no robot"):
        async with voiceloop.open(vad={"engine": broken}):
            pass
    assert not own_threads()


# ---- several at once, and the end


class Gate:
    """Something to open that takes until it is let."""

    def __init__(self) -> None:
        self.begun, self.let, self.closed = (threading.Event() for _ in range(3))

    def load(self) -> str:
        self.begun.set()
        assert self.let.wait(30)
        return "loaded"

    def close(self, loaded: str) -> None:
        assert loaded == "loaded"
        self.closed.set()


async def test_cancelled_while_loading_it_returns_and_is_closed_later() -> None:
    gate = Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(in_background, gate.load, gate.close)
        await anyio.to_thread.run_sync(gate.begun.wait, 30)
        tasks.cancel_scope.cancel()
    assert not gate.closed.is_set()  # nobody waited for it
    gate.let.set()
    assert await anyio.to_thread.run_sync(gate.closed.wait, 30)


async def test_loading_that_raises_stop_iteration_is_an_error_and_not_a_hang() -> None:
    closed = list[object]()
    with anyio.fail_after(5), pytest.raises(RuntimeError, match="StopIteration"):
        await in_background(partial(next, iter(())), closed.append)
    assert not closed and not own_threads()


async def test_cancelled_while_models_load_no_thread_is_left() -> None:
    begun, let = threading.Event(), threading.Event()

    def slow(config: object) -> object:
        begun.set()
        assert let.wait(30)
        raise EngineError("too late", "")

    async def hold() -> None:
        async with voiceloop.open(vad={"engine": slow}):
            raise AssertionError("it is not open")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await anyio.to_thread.run_sync(begun.wait, 30)
        tasks.cancel_scope.cancel()
    let.set()
    for thread in threading.enumerate():
        if thread.name.startswith("voiceloop"):
            await anyio.to_thread.run_sync(thread.join, 60)
    assert not own_threads()


def test_another_event_loop_is_told() -> None:
    """Nothing of asyncio runs here, as under trio."""
    opening = voiceloop.open().__aenter__()
    with pytest.raises(VoiceloopError, match="asyncio"):
        opening.send(None)  # pyright: ignore[reportAttributeAccessIssue]


async def test_a_function_that_is_no_tool_is_told_before_models_are_loaded() -> None:
    with pytest.raises(ConfigError, match="the tool len"):
        async with voiceloop.open(tools=[len]):
            pass


# ---- files


async def test_files_are_heard_and_written_and_closed(tmp_path: Path) -> None:
    written = tmp_path / "reply.wav"
    notes = list[str]()
    async with opened_places(DEMO, written, RATE, notes.append, headphones=False) as places:
        assert not places.full_duplex
        places.speaker.write(np.full(RATE, 0.5, np.float32))
    assert written.stat().st_size > 2 * RATE - 100
    for wrong in (tmp_path, tmp_path / "nowhere.wav"):
        with pytest.raises(AudioError):
            async with opened_places(wrong, None, RATE, notes.append, headphones=False):
                pass


# ---- without an event loop


def test_events_come_without_an_event_loop() -> None:
    events = list(voiceloop.run("starter", microphone=DEMO))
    (over,) = [event for event in events if isinstance(event, voiceloop.TurnOver)]
    assert over.outcome == "done" and over.heard == over.reply
    assert not own_threads()


def test_leaving_the_for_loop_closes_everything() -> None:
    for event in voiceloop.run("starter", microphone=DEMO):
        if isinstance(event, voiceloop.Clause):
            break
    assert not own_threads()
    with pytest.raises(AudioError):
        next(voiceloop.run("starter", microphone=Path("nowhere.wav")))
    assert not own_threads()
    with pytest.raises(ConfigError):
        next(voiceloop.run("nobody's"))


PROGRAM = """
import sys, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
import voiceloop
events = voiceloop.run("starter", microphone=Path(sys.argv[1]))  # is there until the end
for event in events:
    if isinstance(event, voiceloop.{when}):
        print("now", flush=True)
        {then}
"""
LOADING = """
import sys, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import voiceloop
def slow(config):
    print("now", flush=True)
    import threading
    threading.Event().wait()
next(voiceloop.run("starter", vad={"engine": slow}))
"""


def ended(program: str, *, interrupt: bool) -> tuple[int, str]:
    """Run a program; interrupt it when it says `now`. Return its status and what it told."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(DEMO)],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        if interrupt:
            process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        return process.returncode, told


def test_an_error_in_the_for_loop_ends_the_program() -> None:
    status, told = ended(PROGRAM.format(when="Clause", then="1 / 0"), interrupt=False)
    assert status == 1
    assert told.strip().endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    "program", [PROGRAM.format(when="Clause", then="pass"), LOADING], ids=["talking", "loading"]
)
def test_ctrl_c_ends_the_program(program: str) -> None:
    status, told = ended(program, interrupt=True)
    # Python forgets that it was a signal if other threads run code from text while it ends.
    assert status in (-signal.SIGINT, 1)
    assert told.strip().endswith("KeyboardInterrupt")
