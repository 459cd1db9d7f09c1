"""Completion in the shells themselves: what may stand at a place is offered there."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import pytest

from voiceloop.cli.main import COMMANDS, GROUPS
from voiceloop.cli.manual import SHELLS, script, words
from voiceloop.errors import ConfigError
from voiceloop.settings.config import KEYS

pytestmark = pytest.mark.real

KINDS = {name: kind for name, (kind, _) in COMMANDS.items()}
FAMILIES = {word: told for group in GROUPS.values() for word, told in group.items()}
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
    (["talk", "--preset=", "cpu", "--asr.dev"], ["--asr.device"]),
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
def source(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the script for a shell into a file."""

    def write(shell: str) -> Path:
        path = tmp_path / f"completion.{shell}"
        path.write_text(script(shell, KINDS, FAMILIES), encoding="utf-8")
        return path

    return write


def offered(bash: Path, source: Path, lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """What bash's function offers for the last word of each line."""
    program = [f"source {source}"]
    for line in lines:
        listed = " ".join(f"'{word}'" for word in ("voiceloop", *line))
        before = f"'{line[-2]}'" if len(line) > 1 else "voiceloop"
        program += [
            f"COMP_WORDS=({listed}) COMP_CWORD={len(line)}",
            f"_voiceloop voiceloop '{line[-1]}' {before}",
            'echo "${COMPREPLY[*]}"',
        ]
    done = subprocess.run(
        [bash, "--norc", "-c", "\n".join(program)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [sorted(line.split()) for line in done.stdout.split("\n")[:-1]]


def test_bash_offers_what_fits(
    require_program: Callable[[str], Path], source: Callable[[str], Path]
) -> None:
    found = offered(require_program("bash"), source("bash"), [line for line, _ in CASES])
    assert dict(zip(map(tuple, (line for line, _ in CASES)), found, strict=True)) == {
        tuple(line): wanted for line, wanted in CASES
    }


def test_bash_offers_every_option_of_every_command(
    require_program: Callable[[str], Path], source: Callable[[str], Path]
) -> None:
    found = words(KINDS, FAMILIES)
    lines = [[*name.split(), "--"] for name in found]
    listed = offered(require_program("bash"), source("bash"), lines)
    for (name, word), offers in zip(found.items(), listed, strict=True):
        assert offers == sorted(option.name for option in word.options), name
        assert "--help" in offers


class Terminal:
    """A shell at which somebody types."""

    def __init__(self, shell: str, folder: Path) -> None:
        plain = {
            "bash": ["--norc", "--noprofile", "-i"],
            "zsh": ["-f", "-i"],
            "fish": ["--no-config", "-i"],
        }
        self._master, slave = os.openpty()
        environment = os.environ | {"TERM": "dumb", "PS1": "> ", "HOME": str(folder)}
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
    shell: str, source: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "a question.wav").touch()
    if shell == "fish":  # it tells without a terminal what it would offer
        for line, wanted in [("ta", ["talk"]), ("talk --preset ", PRESETS)]:
            assert _of_fish(source("fish"), f"voiceloop {line}") == wanted
        assert _of_fish(source("fish"), "voiceloop ask ./a") == ["./a question.wav"]
        return
    terminal = Terminal(shell, tmp_path)
    try:
        terminal.type(f"source {source(shell)}; echo its''there\n", "itsthere")
        terminal.type("voiceloop ta\t", "voiceloop talk ")
        terminal.type("--preset sm\t", "small ")
        terminal.type("\x15voiceloop ask a\t", "question.wav")
    finally:
        terminal.close()


def _of_fish(source: Path, line: str) -> list[str]:
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {source}; complete -C '{line}'"],
        cwd=source.parent,
        env=os.environ | {"HOME": str(source.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(row.split("\t")[0] for row in done.stdout.splitlines())


def test_a_shell_that_there_is_no_script_for_is_a_mistake() -> None:
    with pytest.raises(ConfigError) as caught:
        script("tcsh", KINDS, FAMILIES)
    assert "tcsh" in caught.value.message and "bash, zsh, fish" in caught.value.hint


@pytest.mark.parametrize("argv", [["--print-completion", "bash"], ["--print-completion=bash"]])
def test_the_command_prints_it(argv: list[str]) -> None:
    command = [sys.executable, "-m", "voiceloop", *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == script("bash", KINDS, FAMILIES)
