"""What a command prints, to readers that take no more of it, or not every character."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.recordings import record
from tests.support.scenario import load_scenario
from voiceloop.bundled import bundled

pytestmark = pytest.mark.real

SCENARIO = Path(__file__).parent / "data" / "scenarios" / "barge_in.toml"
ASK = ["ask", str(bundled("models/starter/demo.wav")), "--pace", "max"]
COMMANDS = {
    "config": ["config"],
    "toml": ["config", "--toml"],
    "help": ["serve", "--help-all"],
    "models": ["models", "list"],
    "replay": ["replay"],
    "ask": ASK,
    "doctor": ["doctor"],
}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The commands with all of their arguments."""
    made = record(tmp_path_factory.mktemp("recordings"), load_scenario(SCENARIO))
    return COMMANDS | {"replay": ["replay", str(made.folder)]}


def run(words: list[str], stdout: int, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "voiceloop", *words],
        env=os.environ | environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


# What is buffered fails later. A conversation shows each line at once.
either_way = pytest.mark.parametrize(
    ("command", "unbuffered"),
    [(command, value) for command in COMMANDS for value in ("1", "") if value or command != "ask"],
)


@either_way
def test_a_reader_that_has_gone_ends_a_command_in_silence(
    command: str, unbuffered: str, commands: dict[str, list[str]]
) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = run(commands[command], write, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(write)
    told = [line for line in done.stderr.splitlines() if "loading" not in line]
    assert (done.returncode, told) == (141, [])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@either_way
def test_output_that_finds_no_room_is_one_line_and_a_hint(
    command: str, unbuffered: str, commands: dict[str, list[str]]
) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run(commands[command], full, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(full)
    told = [line for line in done.stderr.splitlines() if "loading" not in line]
    assert done.returncode == 2
    assert told == [
        "voiceloop: the output cannot be written: No space left on device",
        "hint: make room or choose another disk",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_characters_that_a_terminal_does_not_have_are_no_failure(
    command: str, commands: dict[str, list[str]]
) -> None:
    done = run(commands[command], subprocess.PIPE, PYTHONIOENCODING="ascii:strict")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and "Traceback" not in done.stderr


def test_nor_are_they_written_as_escapes_on_stderr() -> None:
    words = ["voices", "--tts.engine", "espeak"]
    done = run(words, subprocess.DEVNULL, PYTHONIOENCODING="latin-1:backslashreplace")
    assert "loading espeak ? " in done.stderr and "\\u" not in done.stderr


def test_a_file_of_settings_has_every_character_whatever_a_terminal_takes(tmp_path: Path) -> None:
    words = ["config", "--preset", "cpu", "--llm.system", "Sei kurz, höflich.", "--toml"]
    file = tmp_path / "mine.toml"
    with file.open("wb") as stream:
        done = run(words, stream.fileno(), PYTHONIOENCODING="ascii:strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert 'system = "Sei kurz, höflich."' in file.read_text(encoding="utf-8")
    shown = run(["config", "--config", str(file)], subprocess.PIPE).stdout.splitlines()
    assert [line.split()[0] for line in shown if line.endswith(str(file))] == [
        "preset",
        "llm.system",
    ]


def test_a_written_file_keeps_what_is_there_however_often(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}
    file = tmp_path / ".config" / "voiceloop" / "config.toml"

    def write(*flags: str) -> str:
        done = run(["config", "--write", *flags], subprocess.PIPE, **home)
        assert (done.returncode, done.stderr) == (0, "") and str(file) in done.stdout
        return file.read_text(encoding="utf-8")

    first = write()
    assert all(line[:1] in ("", "#", "[") for line in first.splitlines())
    assert write("--place", "Köln", "--llm.stop", "a", "--asr.pad-s", "none") != first
    file.write_text(file.read_text(encoding="utf-8") + "\n# mine\n", encoding="utf-8")
    again = write()
    assert again == write() and again.endswith("# mine\n")
    assert set(first.splitlines()) < set(again.splitlines())
    added = {line for line in again.splitlines() if line and line[0] not in "#["}
    assert added == {'place = "Köln"', 'stop = ["a"]', 'pad_s = "none"'}


ALL_CLOSED = "<&- >&- 2>&-"
CLOSED = {">&-": (1,), "2>&-": (2,), ">&- 2>&-": (1, 2), ALL_CLOSED: (0, 1, 2)}


@pytest.mark.parametrize(
    ("command", "closed"),
    [
        *product(["config", "mistake"], CLOSED),
        *product([command for command in COMMANDS if command != "config"], [ALL_CLOSED]),
    ],
)
def test_a_stream_that_is_closed_is_written_to_by_nobody(
    command: str, closed: str, tmp_path: Path, commands: dict[str, list[str]]
) -> None:
    words = commands.get(command, ["transcribe", "nothing.wav"])
    if command == "ask":
        words = [*words, "--out", str(tmp_path / "r.wav"), "--trace", str(tmp_path / "t.json")]
    shell = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-m", "voiceloop", *words],
        capture_output=True,
        text=True,
    )
    assert done.returncode == (2 if command == "mistake" else 0)
    assert "Traceback" not in done.stderr
    assert (done.stdout == "") or 1 not in CLOSED[closed]
    if command == "ask":  # neither has become a standard stream
        assert (tmp_path / "r.wav").read_bytes()[:4] == b"RIFF"
        assert "traceEvents" in json.loads((tmp_path / "t.json").read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.parametrize("words", [ASK, ["transcribe", ASK[1]], ["say", "hello", "--out", "s.wav"]])
@pytest.mark.parametrize("megabytes", [150, 300])
def test_too_little_memory_is_a_line_that_says_so(
    words: list[str], megabytes: int, tmp_path: Path
) -> None:
    shell = f'ulimit -v {megabytes * 1024}; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-m", "voiceloop", *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if "loading" not in line]
    assert done.returncode == 0 or "memory" in "".join(told)
