"""A scripted server on the loopback that stands in for a hub and for an index of packages.

It serves bytes by path, ranges included, and does to them what its script says.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


@dataclass
class Page:
    """What is served under a path."""

    body: bytes
    kind: str = "application/octet-stream"
    cut: list[int] = field(default_factory=list)
    """Bytes after which each of the next answers breaks off."""
    status: int = 200
    lies: list[bytes] = field(default_factory=list)
    """Bodies that are sent in place of the true one, of the same length."""
    ranges: bool = True
    """Whether a part is sent where a part is asked for."""
    held: threading.Event | None = None
    """Until it is set, an answer stops after `cut` bytes without an end."""
    sent: threading.Event = field(default_factory=threading.Event)
    """Set when what comes before such a stop has been taken by the client."""


class Server:
    """Pages by path, and what has been asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str | None]] = []
        """Path and range of each request."""
        self.url = ""

    def add(self, path: str, body: bytes, kind: str = "application/octet-stream") -> Page:
        """Serve `body` under `path`."""
        self.pages[path] = Page(body, kind)
        return self.pages[path]

    def starts(self, path: str) -> list[int]:
        """From which byte on the file under `path` was asked for, each time."""
        return [
            int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
            for where, asked in self.asked
            if where == path
        ]

    def hub(
        self, repo: str, files: Mapping[str, bytes], *, commit: str = "c" * 40, lfs: str = ".bin"
    ) -> str:
        """Be a hub with this repository; what ends in `lfs` is there with a sha256."""
        siblings: list[dict[str, object]] = []
        for name, body in files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
            entry: dict[str, object] = {"rfilename": name, "size": len(body), "blobId": blob}
            if name.endswith(lfs):
                digest = hashlib.sha256(body).hexdigest()
                entry["lfs"] = {"sha256": digest, "size": len(body), "pointerSize": 130}
            siblings.append(entry)
            self.add(f"/{repo}/resolve/{commit}/{name}", body)
        info = json.dumps({"id": repo, "sha": commit, "siblings": siblings}).encode()
        for path in (f"/api/models/{repo}", f"/api/models/{repo}/revision/{commit}"):
            self.add(path, info, "application/json")
        return commit

    def index(self, package: str, version: str, wheel: bytes) -> Page:
        """Be an index with this wheel."""
        file = f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
        digest = hashlib.sha256(wheel).hexdigest()
        link = f'<html><body><a href="/files/{file}#sha256={digest}">{file}</a></body></html>'
        self.add(f"/simple/{package}/", link.encode(), "text/html")
        return self.add(f"/files/{file}", wheel)


@contextmanager
def serving() -> Iterator[Server]:
    """A server while the body runs."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            wanted = self.headers.get("Range")
            if self.command == "GET":
                server.asked.append((path, wanted))
            page = server.pages.get(path)
            self.close_connection = True
            if page is None or page.status != 200:
                self.send_response(404 if page is None else page.status)
                self.send_header("Content-Length", "0")
                self.send_header("Connection", "close")
                self.end_headers()
                return
            body = page.lies.pop(0) if page.lies and self.command == "GET" else page.body
            first = 0
            if wanted and page.ranges:
                first = int(wanted.removeprefix("bytes=").partition("-")[0])
                self.send_response(206)
                span = f"bytes {first}-{len(body) - 1}/{len(body)}"
                self.send_header("Content-Range", span)
            else:
                self.send_response(200)
            self.send_header("Content-Type", page.kind)
            self.send_header("Content-Length", str(len(body) - first))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command == "HEAD":
                return
            stop = page.cut.pop(0) if page.cut else None
            try:
                self.wfile.write(body[first:] if stop is None else body[first : first + stop])
                if stop is not None and page.held is not None:
                    page.sent.set()
                    page.held.wait()
            except OSError:
                pass  # the client has gone

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        for page in server.pages.values():
            if page.held is not None:
                page.held.set()
        http.shutdown()
        http.server_close()
        thread.join()


def wheel_of(members: Mapping[str, bytes]) -> bytes:
    """A wheel with these members."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return made.getvalue()
