"""The files of web/, read once at the start and served from memory.

A request names a key of a dictionary or nothing: no path is ever put together from what a client
sent, so there is none to escape by. Names in web/ are plain enough to need no decoding, and nothing
is decoded. This module does not decide who may ask.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from voiceloop.errors import ConfigError
from voiceloop.server.access import HeaderList
from voiceloop.server.replies import Reply, line, reply

INDEX = "/index.html"
"""What `/` is."""
TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".wav": "audio/wav",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""Content types by suffix. The machine's own table is not asked: it differs from one to another."""
UNSERVED = (".d.ts", "package.json")
"""Ends of names of files that are there for whoever works on the page."""

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*", re.IGNORECASE | re.ASCII)
_ETAG = re.compile(r'(?:W/)?("[^"]*")')


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    body: bytes
    kind: str
    """Content type."""
    etag: str


class Site:
    """All files by the path under which they are asked for."""

    def __init__(self, assets: Mapping[str, Asset]) -> None:
        self.assets = dict(assets)
        if INDEX in assets:
            self.assets["/"] = assets[INDEX]

    def answer(self, method: str, target: str, headers: HeaderList, host: str) -> Reply:
        """Answer a request for `target`, whose query is ignored; `host` is what `Access.host` gave.

        Statuses are 200, 304, 404, and 405 for a method that is neither GET nor HEAD.
        """
        if method not in ("GET", "HEAD"):
            answered = line(405, "only GET and HEAD are understood", more=(("Allow", "GET, HEAD"),))
        elif asset := self.assets.get(target.partition("?")[0]):
            answered = reply(200, asset.body, asset.kind, host=host, more=(("ETag", asset.etag),))
            if _names(headers, asset.etag):
                answered = Reply(304, answered.headers)
        else:
            answered = line(404, "there is nothing under that name")
        # To HEAD the headers of GET, the length of what is left out among them.
        return Reply(answered.status, answered.headers) if method == "HEAD" else answered


def load(folder: Path) -> Site:
    """Read every file under `folder`.

    ConfigError where there is no index.html, and for a file of an unknown type, one whose name
    would need decoding in a URL, one that cannot be read, and one that is a link.
    """
    assets: dict[str, Asset] = {}
    try:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink():
                raise ConfigError(f"{path} is a link", "put the file itself there")
            if path.is_file() and not path.name.endswith(UNSERVED):
                name = _path(path, folder)
                assets[name] = _asset(path)
    except OSError as error:
        raise ConfigError(
            f"cannot read {error.filename}: {error.strerror}", "install voiceloop again"
        ) from error
    if INDEX not in assets:
        raise ConfigError(f"no web page in {folder}", "install voiceloop again")
    return Site(assets)


def _path(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).parts
    if not all(_NAME.fullmatch(part) for part in parts):
        raise ConfigError(
            f"{path} cannot be served under that name", "use letters, digits, and . _ - within"
        )
    return "/" + "/".join(parts)


def _asset(path: Path) -> Asset:
    if path.suffix not in TYPES:
        raise ConfigError(
            f"{path} is of no known type",
            f"known are {', '.join(TYPES)}; others do not belong here",
        )
    body = path.read_bytes()
    return Asset(body, TYPES[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _names(headers: HeaderList, etag: str) -> bool:
    """Whether the client has what `etag` is of (If-None-Match, RFC 9110, 13.1.2)."""
    given = [value for name, value in headers if name.lower() == "if-none-match"]
    return any(value.strip() == "*" or etag in _ETAG.findall(value) for value in given)
