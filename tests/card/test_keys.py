"""`voiceloop talk` in a terminal, over a sound card that PulseAudio makes up: its keys and rows."""

from __future__ import annotations

import signal
import sys
import time

import pytest

from tests.card.pulse import VirtualCard, hurry
from tests.card.test_talk import say
from tests.server.serving import BY_ITSELF
from tests.terminals import Terminal
from voiceloop.cli.main import main

pytestmark = pytest.mark.audio
WITHOUT_ECHO = pytest.mark.parametrize("card", [False], indirect=True)

SKY = "Why is the sky blue?"


def talk(card: VirtualCard, *options: str) -> Terminal:
    """`voiceloop talk`, once it listens."""
    command = [sys.executable, "-m", "voiceloop", "talk", "--headphones", *BY_ITSELF]
    chosen = ["--asr.engine", "whisper", *options]
    terminal = Terminal([*command, *chosen], card.environment | {"TERM": "xterm-256color"})
    hurry(terminal.process)
    terminal.wait_for("listening to")
    terminal.wait_for("q quit")
    return terminal


@WITHOUT_ECHO
def test_keys_stop_repeat_and_mute_and_q_says_goodbye(card: VirtualCard) -> None:
    with talk(card) as terminal:
        say(card, SKY)
        terminal.wait_for("speaking")
        terminal.press("\x1b[A")
        time.sleep(1.5)
        terminal.press(" ")
        terminal.wait_for("Sunlight")
        terminal.wait_for("(interrupted)")
        terminal.wait_for("listening ")
        terminal.press("r")
        terminal.wait_for("speaking")
        terminal.wait_for("listening ")
        terminal.press("m")
        terminal.wait_for("muted")
        say(card, SKY)
        terminal.press("m")
        terminal.wait_for("listening ")
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.modes == terminal.before
        _, turns, waits, *_ = terminal.shown.rpartition("goodbye")[2].splitlines()
        assert turns.startswith("2 turns in ") and turns.endswith("1 interruption")
        assert waits.startswith("voice to voice: median ")


@WITHOUT_ECHO
def test_with_push_to_talk_the_second_press_sends_the_turn(card: VirtualCard) -> None:
    with talk(card, "--push-to-talk") as terminal:
        terminal.wait_for("press space to talk")
        say(card, SKY)
        terminal.press(" ")
        terminal.wait_for("hearing you")
        say(card, "What is the capital of France?")
        terminal.press(" ")
        terminal.wait_for("you ")
        terminal.wait_for("Paris")
        terminal.wait_for("press space to talk")
        assert "sky" not in terminal.shown.lower().partition("listening to")[2]
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 0
        assert terminal.modes == terminal.before


@WITHOUT_ECHO
def test_ctrl_c_leaves_the_terminal_as_it_was(card: VirtualCard) -> None:
    with talk(card) as terminal:
        terminal.press("\x03")
        assert terminal.end() == 0
        assert terminal.modes == terminal.before
        assert "goodbye" in terminal.shown.splitlines()[-1]


def test_without_keys_there_is_no_push_to_talk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["talk", "--push-to-talk"]) == 2
    assert "--push-to-talk needs the keys of a terminal" in capsys.readouterr().err
