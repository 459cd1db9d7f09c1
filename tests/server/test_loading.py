"""The server while its models are being loaded: the page is there, and nobody gets a session."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.server.serving import BY_ITSELF, PATIENCE_S, free_port

pytestmark = pytest.mark.real

SLOW = """
import contextlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import voiceloop.assembly.loading as loading
from pathlib import Path
held, opened = Path(sys.argv.pop(1)), loading.open_engines
@contextlib.contextmanager
def slowly(config):
    while held.exists():
        time.sleep(0.05)
    with opened(config) as engines:
        yield engines
loading.open_engines = slowly
from voiceloop.__main__ import main
sys.exit(main())
"""


def ask(port: int, path: str) -> tuple[int, str]:
    """Status and text; 0 where nobody answers yet."""
    try:
        with urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """As long as this file is there, nothing is loaded."""
    path = tmp_path / "held"
    path.touch()
    return path


@pytest.fixture
def slow(held: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    port = free_port()
    command = [sys.executable, "-c", SLOW, str(held), "serve", "--port", str(port), *BY_ITSELF]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=dict(os.environ))
    until = time.monotonic() + PATIENCE_S
    while not ask(port, "/healthz")[0] and time.monotonic() < until:
        time.sleep(0.05)
    yield process, port
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.communicate()


def test_the_page_is_there_and_a_session_is_not(
    slow: tuple[subprocess.Popen[str], int], held: Path
) -> None:
    process, port = slow
    assert ask(port, "/")[0] == 200
    assert ask(port, "/readyz") == (503, "the models are being loaded\n")
    assert ask(port, "/v1/voices/en-us")[0] == 503
    with pytest.raises(InvalidStatus) as refused, connect(f"ws://localhost:{port}/v1/realtime"):
        pass
    assert refused.value.response.status_code == 503
    held.unlink()
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening on")
    assert ask(port, "/readyz") == (200, "ready\n")
    with connect(f"ws://localhost:{port}/v1/realtime") as socket:
        assert '"session.created"' in str(socket.recv(timeout=PATIENCE_S))
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_interrupted_while_it_loads_it_ends(
    slow: tuple[subprocess.Popen[str], int], held: Path
) -> None:
    process, _ = slow
    process.send_signal(signal.SIGINT)
    held.unlink()
    assert process.wait(PATIENCE_S) == 130
    _, told = process.communicate()
    # What the other models log of their loading may come after it.
    assert "voiceloop: interrupted" in told.splitlines()
