"""The script of docs/api.md at a sound card that PulseAudio makes up."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from models.train.questions import spoken
from models.train.voices import Voice
from tests.api.test_docs import ROOT, SCRIPT
from tests.card.pulse import hurry, virtual_card

pytestmark = pytest.mark.audio

READY = SCRIPT.replace(
    "        async for", '        print("listening", flush=True)\n        async for'
).replace("event.heard)", "event.heard, flush=True)")

HEEDFUL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""What a shell runs in the background is deaf to Ctrl-C."""


def test_a_spoken_question_is_answered_and_nothing_else(
    tmp_path: Path, require_program: Callable[[str], Path]
) -> None:
    assert READY.count("flush") == 2
    with virtual_card(tmp_path, require_program, echo=True) as card:
        environment = {**card.environment, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            [sys.executable, "-c", f"{HEEDFUL}\n{READY}"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            hurry(process)
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "listening\n"
                card.say(spoken("What is the capital of France?", Voice("espeak", "en-us")))
                line = process.stdout.readline()
                process.send_signal(signal.SIGINT)
                rest, told = process.communicate(timeout=60)
            finally:
                process.kill()
    assert "Paris" in line and rest == ""
    assert told.strip().endswith("KeyboardInterrupt")
