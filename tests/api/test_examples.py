"""The programs in examples/ run as they stand there, but for ports and paths."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
import soundfile

from models.train.questions import spoken
from models.train.voices import Voice
from tests.api.test_docs import ENVIRONMENT, ROOT, run
from tests.server.serving import Client, free_port, serving, until
from tests.tools.test_mcp import talking
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.settings.config import McpServer

pytestmark = pytest.mark.real

EXAMPLES = ROOT / "examples"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def program(name: str, before: str = "", after: str = "") -> str:
    """The text of an example, in which one thing is replaced."""
    text = (EXAMPLES / name).read_text()
    assert before in text
    return text.replace(before, after) if before else text


def test_every_example_is_run_by_a_test_and_named_in_the_docs() -> None:
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    tests = Path(__file__).read_text() + (ROOT / "tests/browser/test_own_page.py").read_text()
    told = (ROOT / "docs/api.md").read_text()
    for name in names:
        assert f'"{name}"' in tests and f"examples/{name}" in told


def test_the_handler_switches_the_light(tmp_path: Path) -> None:
    recording = tmp_path / "light.wav"
    soundfile.write(
        recording, spoken("Turn on the kitchen light.", Voice("espeak", "en-us")), SPEECH_RATE
    )
    folder = tmp_path / "home"
    folder.mkdir()
    printed = run(program("intent_handler.py"), folder, recording)
    assert printed == "Turn on the kitchen light. -> The kitchen light is on.\n"


def test_openais_package_is_answered(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with serving(tmp_path / "log") as server:
        text = program("openai_client.py", "localhost:8765", f"localhost:{server.port}")
        folder = tmp_path / "client"
        folder.mkdir()
        kinds = run(text, folder, tmp_path).splitlines()
    assert kinds[0] == "session.created" and kinds[-1] == "response.done"
    assert "response.output_audio.delta" in kinds


async def test_the_shopping_list_is_written_and_read(tmp_path: Path) -> None:
    text = program("mcp_server.py")
    settings = tomllib.loads(text.split(":\n\n")[1].split("\n\n")[0].replace("\n    ", "\n"))
    given = settings["mcp"]["servers"]["shopping"]
    assert given == {"command": "python", "args": ["/path/to/mcp_server.py"]}
    server = McpServer(
        command=sys.executable,
        args=(str(EXAMPLES / "mcp_server.py"),),
        env={"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)},
        timeout_s=20,
    )
    async with talking(shopping=server) as talk:
        assert await talk.call("add_to_shopping_list", item="milk") == "milk is on the list"
        await talk.call("add_to_shopping_list", item="bread")
        assert "milk" in (read := str(await talk.call("read_shopping_list"))) and "bread" in read
    assert (tmp_path / "shopping.txt").read_text() == "milk\nbread\n"


def test_the_application_has_its_own_pages_and_the_assistant(tmp_path: Path) -> None:
    with application(tmp_path) as (process, port, log):
        site = f"http://localhost:{port}"
        assert read(f"{site}/") == '{"talk":"/voice/"}'
        assert "<!doctype html>" in read(f"{site}/voice").lower()  # by a redirect
        assert "v1/realtime" in read(f"{site}/voice/core/wire.js")
        assert read(f"{site}/voice/readyz") == "ready\n"
        with Client(f"ws://localhost:{port}/voice/v1/realtime") as client:
            assert "Paris" in str(client.write("What is the capital of France?")["output"])
            process.terminate()  # with a client that is still there
            assert process.wait(60) in (0, -15)
    told = log.read_text()
    assert "Traceback" not in told and "Application shutdown complete" in told


@contextmanager
def application(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, Path]]:
    """The FastAPI example under uvicorn, once it is ready: its process, its port and its log."""
    port, log = free_port(), folder / "log.txt"
    (folder / "fastapi_app.py").write_text(program("fastapi_app.py", "port=8000", f"port={port}"))
    command = [sys.executable, "-m", "uvicorn", "fastapi_app:app", "--port", str(port)]
    with (
        log.open("w") as file,
        subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=file, stderr=file) as process,
    ):
        try:
            until(lambda: "Uvicorn running" in log.read_text(), 120)
            yield process, port, log
        finally:
            process.kill()


def read(url: str) -> str:
    with urlopen(url) as answer:
        return answer.read().decode()
