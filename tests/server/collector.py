"""A collector in a process of its own: `python -m tests.server.collector FILE`.

It takes OTLP over HTTP, reads it with the protocol's own classes, and writes each request as a line
of JSON. The real collector is a program in Go that no package index has.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

Values = dict[str, Any]


@dataclass
class Arrived:
    """A span as it arrived."""

    id: str
    trace: str
    parent: str
    name: str
    start_ns: int
    end_ns: int
    attributes: Values
    links: list[tuple[str, str]]
    """Trace and span of each."""
    resource: Values
    status: str = ""
    children: list[Arrived] = field(default_factory=list["Arrived"])

    @property
    def ms(self) -> float:
        return (self.end_ns - self.start_ns) / 1e6


@dataclass
class Collector:
    """The process, and what has reached it."""

    url: str
    file: Path

    def text(self) -> str:
        """Everything, as text."""
        return self.file.read_text()

    def roots(self) -> list[Arrived]:
        """The spans without a parent, each with all that is below it, in the order of starts."""
        spans = [
            _arrived(span, _values(group["resource"].get("attributes", ())))
            for line in self.text().splitlines()
            for group in json.loads(line)["resourceSpans"]
            for scope in group["scopeSpans"]
            for span in scope["spans"]
        ]
        known = {span.id: span for span in spans}
        for span in spans:
            if span.parent:
                known[span.parent].children.append(span)
        return sorted((one for one in spans if not one.parent), key=lambda one: one.start_ns)


@contextmanager
def collecting(folder: Path) -> Iterator[Collector]:
    """The process until the block ends."""
    file = folder / "collected.jsonl"
    file.touch()
    command = [sys.executable, "-m", "tests.server.collector", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Collector(process.stdout.readline().strip(), file)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _values(attributes: list[Values]) -> Values:
    """Attributes as plain values."""

    def plain(value: Values) -> Any:
        ((kind, held),) = value.items()
        return int(held) if kind == "intValue" else held

    return {one["key"]: plain(one["value"]) for one in attributes}


def _id(text: str) -> str:
    return base64.b64decode(text).hex()


def _arrived(span: Values, resource: Values) -> Arrived:
    return Arrived(
        id=_id(span["spanId"]),
        trace=_id(span["traceId"]),
        parent=_id(span.get("parentSpanId", "")),
        name=span["name"],
        start_ns=int(span["startTimeUnixNano"]),
        end_ns=int(span["endTimeUnixNano"]),
        attributes=_values(span.get("attributes", [])),
        links=[(_id(one["traceId"]), _id(one["spanId"])) for one in span.get("links", ())],
        resource=resource,
        status=span.get("status", {}).get("code", ""),
    )


def main(file: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken = MessageToDict(ExportTraceServiceRequest.FromString(body))
            with Path(file).open("a") as lines:
                lines.write(json.dumps(taken) + "\n")
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
