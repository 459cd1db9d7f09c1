"""Completion in the shells themselves: what may stand at a place is offered there."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from voiceloop.cli.main import COMMANDS, GROUPS, main
from voiceloop.cli.manual import SHELLS, completions, script
from voiceloop.errors import ConfigError
from voiceloop.settings.config import KEYS
from voiceloop.settings.flags import arguments

pytestmark = pytest.mark.real

KINDS = {name: kind for name, (kind, _) in COMMANDS.items()}
ROOT = Path(__file__).parents[2]
PRESETS = sorted(get_args(KEYS["preset"]))
FIRSTS = sorted({name.split()[0] for name in KINDS})
CASES = [
    (["ta"], ["talk"]),
    ([""], FIRSTS),
    (["--v"], ["--version"]),
    (["--print-completion", "z"], ["zsh"]),
    (["models", ""], ["list", "pull", "rm", "verify"]),
    (["bench", "la"], ["latency"]),
    (["talk", "--preset", ""], PRESETS),
    (["--preset", ""], PRESETS),
    (["talk", "--preset", "=", "cpu", "--asr.dev"], ["--asr.device"]),
    (["talk", "--preset", "="], PRESETS),
    (["talk", "--preset=c"], ["--preset=cpu"]),
    (["bench", "latency", "--suite=pe"], ["--suite=people"]),
    (["serve", "--ho"], ["--host"]),
    (["bench", "latency", "--suite", "pe"], ["people"]),
    (["say", "--llm"], []),
    (["talk", "--llm.seed", ""], ["auto"]),
    (["talk", "--asr.pad-s", ""], ["none"]),
    (["ask", "q"], []),
    (["talk", "--trace", ""], []),
]
"""The last word of each line is to be completed to one of those; to files where there is none."""


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} on this machine")
    return request.param


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of a shell that finds this voiceloop."""
    program = tmp_path / "bin" / "voiceloop"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m voiceloop "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    return os.environ | own | {"TERM": "dumb", "PS1": "> "}


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the script for a shell into a file."""

    def write(shell: str) -> Path:
        path = tmp_path / f"completion.{shell}"
        path.write_text(script(shell), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(("typed", "wanted"), CASES, ids=lambda words: " ".join(words))
def test_what_may_stand_at_a_place_is_offered(typed: list[str], wanted: list[str]) -> None:
    assert sorted(completions(typed, KINDS, GROUPS)) == wanted


@pytest.mark.parametrize("name", KINDS)
def test_every_option_of_a_command_is_offered_with_its_meaning(name: str) -> None:
    offered = completions([*name.split(), "--"], KINDS, GROUPS)
    own = {f"--{one.options[0]}" for one in arguments(KINDS[name]) if not one.positional}
    assert {*own, "--config", "--help", "--help-all"} <= set(offered)
    assert all(offered.values())


class Terminal:
    """A shell at which somebody types."""

    def __init__(self, shell: str, folder: Path, environment: dict[str, str]) -> None:
        plain = {
            "bash": ["--norc", "--noprofile", "-i"],
            "zsh": ["-f", "-i"],
            "fish": ["--no-config", "-i"],
        }
        self._master, slave = os.openpty()
        self._process = subprocess.Popen(
            [shell, *plain[shell]],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)

    def type(self, keys: str, until: str) -> None:
        """Press keys, and wait until the terminal shows something."""
        os.write(self._master, keys.encode())
        shown, deadline = "", time.monotonic() + 60
        while until not in shown:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert ready, f"{until!r} is not shown: {shown!r}"
            shown += os.read(self._master, 65_536).decode(errors="replace")

    def close(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.wait()
        os.close(self._master)


def test_who_types_at_a_shell_gets_commands_presets_and_files(
    shell: str, source: Callable[[str], Path], environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "a question.wav").touch()
    if shell == "fish":  # it tells without a terminal what it would offer
        for line, wanted in [("ta", ["talk"]), ("talk --preset ", PRESETS)]:
            assert _of_fish(source("fish"), f"voiceloop {line}", environment) == wanted
        assert _of_fish(source("fish"), "voiceloop ask ./a", environment) == ["./a question.wav"]
        return
    terminal = Terminal(shell, tmp_path, environment)
    try:
        terminal.type(f"source {source(shell)}; echo its''there\n", "itsthere")
        terminal.type("voiceloop ta\t", "voiceloop talk ")
        terminal.type("--preset sm\t", "small ")
        terminal.type("\x15voiceloop ask a\t", "question.wav")
    finally:
        terminal.close()


def _of_fish(source: Path, line: str, environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {source}; complete -C '{line}'"],
        cwd=source.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(row.split("\t")[0] for row in done.stdout.splitlines())


def test_a_shell_that_there_is_no_script_for_is_a_mistake() -> None:
    with pytest.raises(ConfigError) as caught:
        script("tcsh")
    assert "tcsh" in caught.value.message and "bash, zsh, fish" in caught.value.hint


@pytest.mark.parametrize("argv", [["--print-completion", "bash"], ["--print-completion=bash"]])
def test_the_command_prints_it(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert capsys.readouterr().out == script("bash")
