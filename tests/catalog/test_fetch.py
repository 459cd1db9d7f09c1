"""One file over a real socket: resumed, checked, and no longer than it should be."""

from __future__ import annotations

import hashlib
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.servers import Server, serving
from voiceloop.catalog.fetch import ProgressBar, Unreachable, Wanted, fetch
from voiceloop.errors import EngineError, ModelCorrupt, VoiceloopError

pytestmark = pytest.mark.real

BODY = bytes(range(256)) * 4000


@dataclass
class Counted(ProgressBar):
    """A bar that counts."""

    done: int = 0
    notes: list[str] = field(default_factory=list)

    def advance(self, count: int) -> None:
        self.done += count

    def note(self, text: str) -> None:
        self.notes.append(text)


def wanted(server: Server, body: bytes = BODY, digest: str | None = None) -> Wanted:
    url = f"{server.url}/file"
    return Wanted("file", url, len(body), digest or f"sha256:{hashlib.sha256(body).hexdigest()}")


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, len(BODY) - 1), max_size=4),
    st.integers(0, len(BODY)),
)
def test_what_breaks_off_anywhere_is_gone_on_with(cuts: list[int], here: int) -> None:
    with serving() as server, tempfile.TemporaryDirectory() as name:
        page = server.add("/file", BODY)
        page.cut = list(cuts)
        folder, bar = Path(name), Counted()
        (folder / "file").write_bytes(BODY[:here])
        assert fetch(wanted(server), folder, bar).read_bytes() == BODY
        assert bar.done == len(BODY)
        # Not a byte was sent twice.
        starts = server.starts("/file")
        assert starts == sorted(starts)
        assert all(start >= here for start in starts)


def test_a_server_without_ranges_begins_anew(server: Server, tmp_path: Path) -> None:
    page = server.add("/file", BODY)
    page.cut, page.ranges = [1000], False
    bar = Counted()
    assert fetch(wanted(server), tmp_path, bar).read_bytes() == BODY
    assert bar.done == len(BODY)


def test_a_damaged_file_is_named_and_fetched_again(server: Server, tmp_path: Path) -> None:
    server.add("/file", BODY).lies = [b"x" * len(BODY)]
    bar = Counted()
    assert fetch(wanted(server), tmp_path, bar).read_bytes() == BODY
    assert bar.notes == ["file is damaged: fetching it again"]
    assert bar.done == len(BODY)


def test_a_file_that_is_damaged_twice_is_refused(server: Server, tmp_path: Path) -> None:
    server.add("/file", BODY).lies = [b"x" * len(BODY), b"y" * len(BODY)]
    with pytest.raises(ModelCorrupt, match="file from 127"):
        fetch(wanted(server), tmp_path, Counted())
    assert not (tmp_path / "file").exists()


def test_no_more_is_written_than_was_announced(server: Server, tmp_path: Path) -> None:
    server.add("/file", BODY + b"more")
    assert fetch(wanted(server), tmp_path, Counted()).read_bytes() == BODY


def test_a_git_blob_is_checked_by_its_id(server: Server, tmp_path: Path) -> None:
    server.add("/file", BODY)
    blob = hashlib.sha1(b"blob %d\0" % len(BODY) + BODY).hexdigest()
    fetch(wanted(server, digest=f"git:{blob}"), tmp_path, Counted())
    (tmp_path / "file").unlink()
    with pytest.raises(ModelCorrupt):
        fetch(wanted(server, digest=f"git:{'0' * 40}"), tmp_path, Counted())


def test_a_refusal_is_one_line(server: Server, tmp_path: Path) -> None:
    server.add("/file", BODY).status = 503
    with pytest.raises(EngineError, match="answers 503 for file"):
        fetch(wanted(server), tmp_path, Counted())


def test_nobody_there_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port} cannot be reached"):
        fetch(Wanted("file", f"http://127.0.0.1:{port}/", 9, "sha256:0"), tmp_path, Counted())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_disk_that_fills_up_is_one_line(server: Server, tmp_path: Path) -> None:
    server.add("/file", BODY)
    (tmp_path / "file").symlink_to("/dev/full")
    with pytest.raises(VoiceloopError, match="is full"):
        fetch(wanted(server), tmp_path, Counted())
