"""The stock clients of the OpenAI Realtime API, unmodified, hold a spoken conversation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from tests.conftest import lacking
from tests.server.serving import KEY, RATE, serving, spoken_question, to_wire
from voiceloop.cli.main import main

pytestmark = pytest.mark.real

HERE = Path(__file__).parent / "stock"
CAPITAL = "What is the capital of France?"


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    folder = tmp_path / "speech"
    folder.mkdir()
    pcm = to_wire(spoken_question(CAPITAL), 16_000)
    (folder / "capital.pcm").write_bytes(pcm)
    return folder


def installed(command: list[str], folder: Path) -> None:
    """Install a stock client; it has requirements of its own, and so a place of its own."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        lacking(f"{command[0]} could not install the client: {done.stderr.strip()[-200:]}")


def assert_a_conversation(
    done: subprocess.CompletedProcess[str], answer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == {
        "session": "realtime",
        "detection": "semantic_vad",
        "heard": CAPITAL,
        "answer": "The capital of France is Paris.",
        "interrupted": "turn_detected",
        "truncated": 400,
        "after": "The capital of France is Paris.",
        "called": "get_time",
        "told": "It is 7:42 PM.",
    }
    wav = answer.with_suffix(".wav")
    sf.write(wav, np.frombuffer(answer.read_bytes(), "<i2"), RATE)
    capsys.readouterr()
    assert main(["transcribe", "--json", str(wav)]) == 0
    assert "paris" in json.loads(capsys.readouterr().out)["text"].lower()


def test_the_client_for_python(
    tmp_path: Path, speech: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installed([sys.executable, "-m", "venv", "stock"], tmp_path)
    python = tmp_path / "stock" / "bin" / "python"
    installed([str(python), "-m", "pip", "install", "--quiet", "openai[realtime]"], tmp_path)
    answer = tmp_path / "answer.pcm"
    with serving(tmp_path) as server:
        url = f"ws://localhost:{server.port}/v1"
        command = [str(python), str(HERE / "client.py"), url, str(speech), str(answer)]
        environment = os.environ | {"OPENAI_API_KEY": KEY}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert_a_conversation(done, answer, capsys)


def test_the_client_for_node(
    tmp_path: Path,
    speech: Path,
    require_program: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    node, npm, openssl = (require_program(name) for name in ("node", "npm", "openssl"))
    installed([str(npm), "install", "--silent", "openai", "ws"], tmp_path)
    (tmp_path / "client.mjs").write_text((HERE / "client.mjs").read_text())
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(cert)]
    make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run([str(openssl), *make], check=True, capture_output=True)
    key.chmod(0o600)
    answer = tmp_path / "answer.pcm"
    with serving(tmp_path, "--cert", str(cert), "--key", str(key)) as server:
        url = f"https://localhost:{server.port}/v1"
        command = [str(node), "client.mjs", url, str(speech), str(answer)]
        environment = os.environ | {"NODE_EXTRA_CA_CERTS": str(cert)}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
    assert_a_conversation(done, answer, capsys)
