"""The log of who came and went: for programs in a file, in plain words on a terminal."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.server.serving import (
    BY_ITSELF,
    PATIENCE_S,
    Client,
    Event,
    free_port,
    serving,
    to_wire,
    until,
)
from voiceloop.audio.files import AudioFile
from voiceloop.bundled import bundled
from voiceloop.types import Pcm

pytestmark = pytest.mark.real

DEMO = "Why is the sky blue?"
CAPITAL = "What is the capital of France?"


def demo() -> Pcm:
    with AudioFile(bundled("models/starter/demo.wav"), 16_000) as file:
        return np.concatenate(list(file.blocks()))


def visit_twice(port: int) -> None:
    """Speak, break off, come back from a page, and write; then somebody is refused."""
    url, page = f"ws://localhost:{port}/v1/realtime", f"http://localhost:{port}"
    with Client(url) as client:
        client.update(voiceloop={"resume": True})
        token = client.wait("voiceloop.session.token")["token"]
        client.say(to_wire(demo(), 16_000))
        client.wait("response.done")
        client.drop()
    with Client(url, origin=page) as client:
        client.send("voiceloop.resume", token=token)
        client.wait("voiceloop.session.resumed")
        client.write(CAPITAL)
    request = urllib.request.Request(page, headers={"Host": "elsewhere.example"})
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=PATIENCE_S)


@pytest.mark.not_over("haproxy", "ray", why="each server has a log of its own")
@pytest.mark.parametrize("told", [False, True])
def test_programs_are_told_of_visits_and_of_what_was_said_only_where_it_was_asked_for(
    told: bool, tmp_path: Path
) -> None:
    with serving(tmp_path, *["--log-transcripts"] * told) as server:
        visit_twice(server.port)
        until(lambda: server.log.read_text().count('"a visit is over"') == 2)
        assert server.stop() == 0
        lines: list[Event] = [json.loads(line) for line in server.log.read_text().splitlines()]

    def of(message: str) -> list[Event]:
        return [line for line in lines if line["message"] == message]

    assert [(one["visit"], one["client"]) for one in of("a visit begins")] == [
        (1, "program"),
        (2, "browser"),
    ]
    assert [(one["visit"], one["turns"]) for one in of("a visit is over")] == [(1, 1), (2, 1)]
    assert all(0 < one["lasted_s"] < 300 for one in of("a visit is over"))
    assert [(one["visit"], one["of"]) for one in of("a conversation goes on")] == [(2, 1)]
    assert [one["reason"] for one in of("a request was refused")] == ["host"]
    first, second = of("a turn is over")
    assert (first["visit"], second["visit"]) == (1, 2)
    (written,) = of("a message is answered")
    if told:
        assert (first["transcript"], written["text"]) == (DEMO, CAPITAL)
        assert "blue" in first["reply"] and first["heard"] == first["reply"]
        assert "Paris" in second["reply"]
    else:
        assert first["transcript"] == f"({len(DEMO)} characters)"
        assert written["text"] == f"({len(CAPITAL)} characters)"
        assert not re.search("sky|blue|France|Paris", json.dumps(lines))


class Screen:
    """A terminal at which a server runs."""

    def __init__(self, *options: str) -> None:
        self.port = free_port()
        self._master, slave = os.openpty()
        command = [sys.executable, "-m", "voiceloop", "serve"]
        command += ["--port", str(self.port), *BY_ITSELF]
        self.process = subprocess.Popen(
            [*command, *options], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.shown = ""

    def wait(self, text: str) -> None:
        """Until the terminal shows it."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} is not shown: {self.shown}"
            self.shown += os.read(self._master, 65_536).decode().replace("\r\n", "\n")

    def close(self) -> None:
        """End the server."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def screen() -> Iterator[Screen]:
    screen = Screen("--log-transcripts")
    yield screen
    screen.close()


def test_a_person_is_told_in_plain_words(screen: Screen) -> None:
    screen.wait(f"listening on http://localhost:{screen.port}: open it in a browser")
    visit_twice(screen.port)
    screen.wait("somebody was refused: this server does not answer to that name")
    screen.wait("visit 2 ends")
    screen.process.send_signal(signal.SIGINT)
    screen.wait("goodbye")
    assert screen.process.wait(PATIENCE_S) == 0
    told = re.findall(r"^\d\d:\d\d:\d\d  (.*)$", screen.shown, re.MULTILINE)
    assert told[0] == "loading whisper starter, llm starter, espeak …"
    assert told[-1] == "goodbye"
    rest = [re.sub(r"\d+(\.\d+)? s\b", "N s", line) for line in told]
    for line in (
        "visit 1 begins: a program",
        "visit 2 begins: a browser",
        "visit 2 goes on with the conversation of visit 1",
        f'visit 2 wrote "{CAPITAL}"',
        'visit 2 was answered "The capital of France is Paris."',
    ):
        assert line in rest
    assert any(line.startswith(f'visit 1 said "{DEMO}", was answered "') for line in rest)
    assert any(line.startswith("visit 1 ends after N s, 1 turn") for line in rest)
    assert "{" not in screen.shown and "Traceback" not in screen.shown
