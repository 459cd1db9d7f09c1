"""A terminal gets its modes back, whatever ends or stops what reads its keys."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
from typing import Any

import pytest

from tests.terminals import Terminal

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform == "win32", reason="on Windows no keys are read"),
]

PROGRAM = """
import anyio, anyio.lowlevel
from rich.console import Console
from voiceloop import process
from voiceloop.view.keyboard import follow_job_control
from voiceloop.view.keyboard import own_keyboard
from voiceloop.view.views import LiveView
from voiceloop.view.rows import Status

async def main(keyboard, live):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow_job_control, keyboard, live)
        await anyio.lowlevel.checkpoint()  # it begins
        live.draw(Status(0.0))
        print("begun", flush=True)
        async for key in keyboard.pressed():
            print(f"pressed {key!r}", flush=True)
            if key == "q":
                tasks.cancel_scope.cancel()
            assert key != "!", "as asked"

keyboard, live = own_keyboard(), LiveView(Console())
with process.all_like_ctrl_c(), live, keyboard:
    anyio.run(main, keyboard, live)
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": os.getcwd(), "TERM": "xterm"}


def opened() -> Terminal:
    terminal = Terminal([sys.executable, "-c", PROGRAM], ENVIRONMENT)
    terminal.wait_for("begun")
    return terminal


def flags(modes: list[Any]) -> int:
    return modes[3] & (termios.ICANON | termios.ECHO)


def test_a_letter_whose_bytes_come_apart_is_one_key() -> None:
    first, second = "ü".encode()
    with opened() as terminal:
        terminal.press(b"x" + bytes([first]))
        terminal.wait_for("pressed 'x'")
        terminal.press(bytes([second]) + b"q")
        terminal.wait_for("pressed 'ü'")
        assert terminal.end() == 0


def test_keys_come_at_once_and_unseen_and_arrows_are_none() -> None:
    with opened() as terminal:
        assert not flags(terminal.modes)
        terminal.press("\x1b[A")
        terminal.press("m")
        terminal.wait_for("pressed 'm'")
        terminal.press("\x1b")
        terminal.wait_for(r"pressed '\x1b'")
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.modes == terminal.before
        assert terminal.shown.count("pressed") == 3


@pytest.mark.parametrize("way", ["\x03", "!", signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_modes_are_those_of_before_whatever_ends_it(way: str | signal.Signals) -> None:
    with opened() as terminal:
        if isinstance(way, str):
            terminal.press(way)
        else:
            terminal.process.send_signal(way)
        assert terminal.end() != 0
        assert terminal.modes == terminal.before
        assert terminal.shown.rindex("\x1b[?25h") > terminal.shown.rindex("\x1b[?25l")


def test_ctrl_z_gives_the_terminal_to_the_shell_until_it_goes_on() -> None:
    with opened() as terminal:
        for _ in range(2):
            terminal.press("\x1a")
            _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            assert terminal.modes == terminal.before
            terminal.wait_for("\x1b[?25h")
            terminal.process.send_signal(signal.SIGCONT)
            terminal.press("m")
            terminal.wait_for("pressed 'm'")
            assert not flags(terminal.modes)
        terminal.press("q")
        assert terminal.end() == 0


def test_what_is_no_terminal_of_its_own_has_no_keys() -> None:
    code = "from voiceloop.view.keyboard import own_keyboard; assert own_keyboard() is None"
    subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, check=True)
    code = f"import os, pty; os.dup2(pty.openpty()[1], 0); {code}"
    subprocess.run([sys.executable, "-c", code], check=True)
