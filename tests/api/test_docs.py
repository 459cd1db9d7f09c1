"""The examples of docs/api.md run as they stand there, from a folder with nothing else in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
import soundfile

from models.train.questions import spoken
from models.train.voices import Voice
from tests.server.serving import Client, free_port, until
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bundled import bundled

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
SCRIPT, SITE, HANDLER = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL | re.MULTILINE
)
"""All examples of the page."""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def run(program: str, folder: Path, recording: Path) -> str:
    """Save an example as a user would, run it on a recording, and return what it prints."""
    (folder / "example.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "example.py", str(recording)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [one.name for one in folder.iterdir()] == ["example.py"]
    return done.stdout


def test_the_script_answers_a_question_in_a_few_lines(tmp_path: Path) -> None:
    assert len([line for line in SCRIPT.splitlines() if line.strip()]) <= 12
    (line,) = run(SCRIPT, tmp_path, bundled("models/starter/demo.wav")).splitlines()
    asked, _, heard = line.partition(" -> ")
    assert asked == "Why is the sky blue?" and "blue light" in heard


def test_the_handler_switches_the_light(tmp_path: Path) -> None:
    recording = tmp_path / "light.wav"
    soundfile.write(
        recording, spoken("Turn on the kitchen light.", Voice("espeak", "en-us")), SPEECH_RATE
    )
    folder = tmp_path / "home"
    folder.mkdir()
    printed = run(HANDLER, folder, recording)
    assert printed == "Turn on the kitchen light. -> The kitchen light is on.\n"


def test_the_site_has_its_own_pages_and_the_assistant(tmp_path: Path) -> None:
    port = free_port()
    assert "port=8000" in SITE
    (tmp_path / "app.py").write_text(SITE.replace("port=8000", f"port={port}"))
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)]
    log = tmp_path / "log.txt"
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, cwd=tmp_path, env=ENVIRONMENT, stdout=file, stderr=file
        ) as process,
    ):
        try:
            until(lambda: "Uvicorn running" in log.read_text())
            site = f"http://localhost:{port}"
            assert read(f"{site}/") == '{"talk":"/voice/"}'
            assert "<!doctype html>" in read(f"{site}/voice").lower()  # by a redirect
            assert "v1/realtime" in read(f"{site}/voice/core/wire.js")
            assert read(f"{site}/voice/readyz") == "ready\n"
            with Client(f"ws://localhost:{port}/voice/v1/realtime") as client:
                assert "Paris" in str(client.write("What is the capital of France?")["output"])
                process.terminate()  # with a client that is still there
                assert process.wait(60) in (0, -15)
        finally:
            process.kill()
    told = log.read_text()
    assert "Traceback" not in told and "Application shutdown complete" in told


def read(url: str) -> str:
    with urlopen(url) as answer:
        return answer.read().decode()
