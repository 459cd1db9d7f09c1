"""Clients that mean harm, or are broken: they are refused or sent away, and nobody else notices."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.server.serving import READS_FIGURES, Client, Serving, serving, until, well_served

pytestmark = pytest.mark.real

KEY = "a-key-that-only-this-test-knows-0123456789"
BEARER = {"Authorization": f"Bearer {KEY}"}
PLACES = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("strangers")
    places = ("--server.max-sessions", str(PLACES), "--server.max-sessions-per-key", str(PLACES))
    with serving(folder, *places, VOICELOOP_API_KEY=KEY) as server:
        yield server
        assert KEY not in server.log.read_text()


@pytest.fixture
def friend(server: Serving) -> Iterator[Client]:
    """Somebody whose session must go on whatever the others do."""
    with well_served(server, additional_headers=BEARER) as friend:
        yield friend


def refused(url: str, **options: object) -> int:
    """The status with which a connection is refused."""
    with pytest.raises(InvalidStatus) as found, connect(url, **options):  # type: ignore[arg-type]
        pass
    return found.value.response.status_code


def get(url: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_who_has_no_key_or_a_wrong_one_stays_outside(server: Serving, friend: Client) -> None:
    assert refused(server.url) == 401
    assert refused(server.url, additional_headers={"Authorization": "Bearer wrong"}) == 401
    assert refused(f"{server.url}?api_key={KEY}") == 400
    assert get(f"{server.page}/metrics") == 401
    assert get(f"{server.page}/metrics", **BEARER) == 200


def test_a_page_shows_its_key_by_a_subprotocol_that_is_not_echoed(server: Serving) -> None:
    offered = ["realtime", f"openai-insecure-api-key.{KEY}"]
    with connect(server.url, subprotocols=offered) as page:  # type: ignore[arg-type]
        assert page.subprotocol == "realtime"
        assert KEY not in str(page.response and page.response.headers)
    with connect(server.url, additional_headers=BEARER) as program:
        assert program.subprotocol is None, "nothing is selected where nothing is offered"


def test_pages_and_names_from_elsewhere_are_refused(server: Serving, friend: Client) -> None:
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        assert refused(server.url, origin=origin, additional_headers=BEARER) == 403
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert raw.recv(100).split()[1] == b"421"


def asked(server: Serving, headers: dict[str, str]) -> int:
    """The status for whoever asks, without a socket, whether they would get one."""
    with closing(HTTPConnection("localhost", server.port)) as connection:
        connection.request("GET", "/v1/realtime", headers=headers)
        return connection.getresponse().status


@pytest.mark.not_over(
    "haproxy", "ray", why="each server has places of its own; those of a key are told on the socket"
)
@pytest.mark.not_over(
    "haproxy", "ray", why="each server has places of its own; those of a key are told on the socket"
)
def test_beyond_the_last_place_nobody_comes_in_until_one_is_free(server: Serving) -> None:
    taken = [Client(server.url, additional_headers=BEARER) for _ in range(PLACES)]
    for client in taken:
        client.wait("session.created")
    assert refused(server.url, additional_headers=BEARER) == 503
    assert asked(server, BEARER) == 503
    for client in taken:
        client.__exit__(None, None, None)
    deadline = time.monotonic() + 10
    while True:
        try:
            with connect(server.url, additional_headers=BEARER) as late:
                assert json.loads(late.recv())["type"] == "session.created"
                return
        except InvalidStatus:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@READS_FIGURES
def test_a_client_that_vanishes_in_mid_turn_leaves_nothing_behind(
    server: Serving, friend: Client
) -> None:
    for _ in range(20):
        with Client(server.url, additional_headers=BEARER) as client:
            client.wait("session.created")
            client.create("Why is the sky blue?")
            client.send("response.create")
            client.wait("response.created")
            client.drop()
    wait_until_connected(server, 1)


def wait_until_connected(server: Serving, count: int) -> None:
    """Wait until so many sessions have a connection, as the server's metrics tell."""
    until(lambda: server.metrics(KEY)['voiceloop_sessions{state="connected"}'] == count)
