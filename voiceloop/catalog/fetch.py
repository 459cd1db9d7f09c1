"""Fetches one file. A download that broke off is continued, and the whole file is checked. One
progress bar stands for all files that are fetched, with the rate and the remaining time.

This module knows URLs, byte ranges and checksums, and nothing of models.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from voiceloop.catalog.store import explained
from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.terminal import printable

logger = logging.getLogger(__name__)

ANSWER_S = 4.5
"""Seconds after which a server counts as unreachable if no connection, or no answer, has come."""
SILENCE_S = 30.0
"""Seconds without data after which a download is broken off and tried again."""
TRIES = 5
"""Number of failed attempts in a row after which a download is given up. If a failed attempt has
received data, the count begins again at 1."""


class Unreachable(EngineError):
    """The error for a server that does not answer."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(
            f"{host} cannot be reached ({why})",
            "check the network and try again: what has come is kept",
        )


class ProgressBar:
    """A receiver of the progress of downloads. This one, for where no terminal is, only logs
    notes."""

    def advance(self, count: int) -> None:
        """Add `count` to the bytes that are done. It is negative for bytes that are thrown away."""

    def note(self, text: str) -> None:
        """Show a line to the user."""
        logger.warning(text)


@contextmanager
def progress(title: str, total: int) -> Iterator[ProgressBar]:
    """Show a bar of `total` bytes on stderr while the context lasts. If stderr is no terminal, only
    log `title` and notes."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        logged = ProgressBar()
        logged.note(title)
        yield logged
        return
    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console) as shown:
        task = shown.add_task(printable(title), total=total)

        class TerminalBar(ProgressBar):
            def advance(self, count: int) -> None:
                shown.advance(task, count)

            def note(self, text: str) -> None:
                line = printable(f"voiceloop: {text}")
                shown.console.print(line, highlight=False, markup=False)

        yield TerminalBar()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to fetch."""

    name: str
    url: str
    bytes: int
    digest: str
    """`sha256:` and a SHA-256, or `git:` and the id of a git blob, in hexadecimal digits."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def matches(self, path: Path) -> bool:
        """Return whether the file at `path` has the digest of this one."""
        kind, _, digits = self.digest.partition(":")
        digest = hashlib.sha256()
        if kind == "git":
            digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: digest).hexdigest() == digits


def fetch(wanted: Wanted, folder: Path, bar: ProgressBar) -> Path:
    """Fetch a file into `folder`, or continue an earlier attempt. Returns its path.

    A file that arrives damaged is reported and fetched once more. Raises Unreachable, EngineError
    if the server answers with an error, VoiceloopError if the disk is full, and ModelCorrupt for a
    file that arrives damaged twice.
    """
    path = folder / wanted.name
    with explained(folder):
        path.parent.mkdir(parents=True, exist_ok=True)
    for last in (False, True):
        present = path.stat().st_size if path.is_file() else 0
        bar.advance(min(present, wanted.bytes))
        if present < wanted.bytes:
            _complete(wanted, path, bar)
        if path.stat().st_size == wanted.bytes and wanted.matches(path):
            return path
        bar.advance(-min(path.stat().st_size, wanted.bytes))
        path.unlink()
        if not last:
            bar.note(f"{wanted.name} is damaged: fetching it again")
    raise ModelCorrupt(
        f"{wanted.name} from {host_of(wanted.url)} is not what it should be",
        "pull again later, or from another source (--from)",
    )


def _complete(wanted: Wanted, path: Path, bar: ProgressBar) -> None:
    """Append the missing bytes of a file, over several connections if necessary."""
    failures, why = 0, ""
    while failures < TRIES:
        before = path.stat().st_size if path.is_file() else 0
        try:
            return _append_once(wanted, path, before, bar)
        except ConnectionError as error:
            after = path.stat().st_size if path.is_file() else 0
            failures = 1 if after > before else failures + 1
            why = str(error)
    raise Unreachable(host_of(wanted.url), why)


def _append_once(wanted: Wanted, path: Path, start: int, bar: ProgressBar) -> None:
    """Append the bytes that one connection gives, from byte `start` on. Raises ConnectionError if
    the connection breaks off, Unreachable if no connection can be made, and EngineError if the
    server answers with an error."""
    import httpx2

    headers = {**wanted.headers, "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    timeout = httpx2.Timeout(SILENCE_S, connect=ANSWER_S)
    try:
        with (
            httpx2.Client(timeout=timeout, follow_redirects=True) as client,
            client.stream("GET", wanted.url, headers=headers) as answer,
        ):
            if answer.status_code not in (200, 206):
                raise EngineError(
                    f"{host_of(wanted.url)} answers {answer.status_code} for {wanted.name}",
                    "pull again later, or from another source (--from)",
                )
            goes_on = answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            if start and not (answer.status_code == 206 and goes_on):
                bar.advance(-start)
                start = 0
            with explained(path.parent), path.open("ab" if start else "wb") as file:
                left = wanted.bytes - start
                # No chunk size: if the connection broke, data collected for a chunk would be lost.
                for block in answer.iter_raw():
                    # Never write more bytes than were announced, even if the server sends more.
                    file.write(block[:left])
                    bar.advance(len(block[:left]))
                    left -= len(block)
                    if left <= 0:
                        return
            raise ConnectionError(f"{wanted.name} broke off")
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise Unreachable(host_of(wanted.url), str(error) or "no connection") from error
    except httpx2.TransportError as error:
        raise ConnectionError(str(error) or type(error).__name__) from error


def host_of(url: str) -> str:
    """Return the host of a URL and its port, if it gives one, without user and password."""
    return urlsplit(url).netloc.rpartition("@")[2]
