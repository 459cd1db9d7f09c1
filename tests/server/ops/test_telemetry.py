"""Telemetry from end to end: a conversation with the real server, and what a collector gets."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from tests.server.collector import Arrived, Collector, collecting
from tests.server.serving import BY_ITSELF, Client, free_port, serving, to_wire
from tests.server.traced import spoken, traced
from voiceloop.audio.frames import SPEECH_RATE, silence

pytestmark = pytest.mark.real

CALLER = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
"""The trace and the span of whoever connects."""
HANGOVER_MS = 900
SAID, REPLIED = "What time is it in Paris", "It is noon in Paris."
UNTOLD = ("time is", "Paris", "noon")


def converse(url: str) -> None:
    """Ask with a pause in the question: a reply to its first part is begun, and dropped."""
    pause = silence(round(0.6 * SPEECH_RATE))
    question = np.concatenate((spoken("What time is it"), pause, spoken("in Paris")))
    headers = {"traceparent": f"00-{'-'.join(CALLER)}-01"}
    with Client(url, additional_headers=headers) as client:
        client.wait("session.created")
        detection = {"type": "server_vad", "silence_duration_ms": HANGOVER_MS}
        audio = {"input": {"turn_detection": detection}}
        client.update(voiceloop={"traces": True}, audio=audio)
        client.say(to_wire(question, SPEECH_RATE), pause_s=1.5)
        done = client.wait("response.done")["response"]
        assert done["output"][-1]["content"][0]["transcript"] == REPLIED
        client.wait("voiceloop.trace", where=lambda one: one["trace"]["outcome"] == "done")


@pytest.fixture(scope="module", params=[False, True], ids=["", "words"])
def collected(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Collector, bool]]:
    """What has arrived of one conversation, and whether its words were to."""
    folder = tmp_path_factory.mktemp("telemetry")
    with collecting(folder) as collector:
        to = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "kitchen"}
        with traced(folder, words=request.param, **to) as server:
            converse(server.url)
            assert server.stop() == 0, server.log.read_text()
        yield collector, request.param


def all_below(span: Arrived) -> Iterator[Arrived]:
    yield span
    for child in span.children:
        yield from all_below(child)


def named(root: Arrived, start: str) -> list[Arrived]:
    found = [one for one in all_below(root) if one.name.startswith(start)]
    return sorted(found, key=lambda one: one.start_ns)


def test_a_turn_with_a_dropped_reply_and_a_tool_arrives_whole(
    collected: tuple[Collector, bool],
) -> None:
    (root,) = collected[0].roots()
    assert root.name == "invoke_agent voiceloop" and root.resource["service.name"] == "kitchen"
    assert root.attributes["voiceloop.outcome"] == "done"
    assert root.attributes["gen_ai.conversation.id"].startswith("conv_")
    dropped, before, after = named(root, "chat scripted")
    (tool,) = named(root, "execute_tool get_time")
    assert dropped.attributes["voiceloop.dropped"] is True
    assert dropped.links == [(root.trace, root.id)]
    assert before.end_ns <= tool.start_ns <= tool.end_ns <= after.start_ns
    assert after.attributes["gen_ai.usage.output_tokens"] == len(REPLIED.split())
    for name in ("endpoint", "stt", "tts", "playback"):
        assert len([one for one in root.children if one.name == name]) == 1
    assert root.links == [CALLER], "who called is no parent"
    for span in all_below(root):
        assert span.trace == root.trace
        for child in span.children:
            assert span.start_ns <= child.start_ns <= child.end_ns <= span.end_ns


def test_the_parts_sum_to_voice_to_voice(collected: tuple[Collector, bool]) -> None:
    (root,) = collected[0].roots()
    (latency,) = named(root, "voice_to_voice")
    told = root.attributes["voiceloop.voice_to_voice_ms"]
    parts = sorted(latency.children, key=lambda one: (one.start_ns, one.end_ns))
    assert len(parts) == 5
    assert sum(part.ms for part in parts) == pytest.approx(told, abs=1)
    (endpoint,) = named(root, "endpoint")
    assert endpoint.ms == pytest.approx(parts[0].ms, abs=0.01)


def test_words_arrive_only_where_that_is_asked_for(collected: tuple[Collector, bool]) -> None:
    collector, wanted = collected
    if not wanted:
        assert not [text for text in UNTOLD if text in collector.text()]
        return
    (root,) = collector.roots()
    (said,) = json.loads(root.attributes["gen_ai.input.messages"])
    (replied,) = json.loads(root.attributes["gen_ai.output.messages"])
    assert said["parts"][0]["content"] == SAID and replied["parts"][0]["content"] == REPLIED
    (tool,) = named(root, "execute_tool")
    assert json.loads(tool.attributes["gen_ai.tool.call.arguments"]) == {"city": "Paris"}


def test_without_a_collector_turns_go_on_and_the_server_ends(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    with traced(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=nobody) as server:
        converse(server.url)
        assert server.stop() == 0


def test_the_end_does_not_wait_for_a_collector_that_is_stuck(tmp_path: Path) -> None:
    over = threading.Event()

    class Stuck(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            over.wait()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Stuck) as stuck:
        thread = threading.Thread(target=stuck.serve_forever)
        thread.start()
        try:
            to = f"http://127.0.0.1:{stuck.server_port}"
            with traced(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=to) as server:
                converse(server.url)
                assert server.stop() == 0
                assert "the collector is too slow" in server.log.read_text()
        finally:
            over.set()
            stuck.shutdown()
            thread.join()


@pytest.mark.parametrize("exporter", ["otlp", "none"])
def test_the_command_exports_if_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exporter: str
) -> None:
    with collecting(tmp_path) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", exporter)
        with serving(tmp_path, "--telemetry") as server:
            with Client(server.url) as client:
                client.wait("session.created")
                client.update(output_modalities=["text"])
                client.write("What is the capital of France?")
            assert server.stop() == 0
        if exporter == "none":
            assert not collector.roots()
            return
        (root,) = collector.roots()
        assert root.resource["service.name"] == "voiceloop" and named(root, "chat")
        assert root.attributes["gen_ai.output.type"] == "text"
        assert "Paris" not in collector.text()


WITHOUT = """
import sys
sys.modules["opentelemetry.sdk"] = None
from voiceloop.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("how", "protocol", "hint"),
    [
        (["-c", WITHOUT], "http/protobuf", "pip install 'voiceloop[otel]'"),
        (["-m", "voiceloop"], "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"),
    ],
    ids=["without the extra", "by grpc"],
)
def test_why_nothing_can_be_exported_is_said_in_one_line(
    how: list[str], protocol: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    command = [sys.executable, *how, "serve", "--telemetry", *BY_ITSELF]
    done = subprocess.run([*command, "--port", str(free_port())], capture_output=True, text=True)
    assert done.returncode != 0 and hint in done.stderr and "Traceback" not in done.stderr
