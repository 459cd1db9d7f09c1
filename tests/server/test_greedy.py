"""Clients that want more than their share: they are told or sent away, and others are served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from tests.server.serving import SHELLS, Client, Serving, serving, until, well_served

pytestmark = pytest.mark.real

PREFILL = 3000
AHEAD_S = 4.0
PER_S, BURST = 100, 50
QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """Where the server runs."""
    return request.param


@pytest.fixture(scope="module")
def server(shell: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    options = {
        "prefill-tokens-per-min": PREFILL,
        "audio-ahead-s": AHEAD_S,
        "messages-per-s": PER_S,
        "messages-burst": BURST,
    }
    flags = [text for name, value in options.items() for text in (f"--server.{name}", str(value))]
    with serving(tmp_path_factory.mktemp("greedy"), *flags, shell=shell) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


@pytest.fixture
def friend(server: Serving) -> Iterator[Client]:
    """Somebody whose session goes on whatever the others want."""
    with well_served(server) as friend:
        yield friend


@pytest.fixture
def greedy(server: Serving) -> Iterator[Client]:
    with Client(server.url) as greedy:
        greedy.wait("session.created")
        greedy.update(output_modalities=["text"], max_output_tokens=1)
        yield greedy


def test_a_prompt_that_is_read_anew_for_ever_ends_its_session(
    friend: Client, greedy: Client
) -> None:
    with suppress(ConnectionClosed, AssertionError):
        for number in range(20):
            words = " ".join(f"Rule {number}.{i}: be kind." for i in range(100))
            greedy.send("session.update", session={"type": "realtime", "instructions": words})
            greedy.write(QUESTION)
            assert "Paris" in str(friend.write(QUESTION)["output"])
    until(lambda: greedy.closed is not None)
    assert greedy.socket.close_code == 1008
    assert "tokens read in a minute" in str(greedy.socket.close_reason)
    told = greedy.all("error")[-1]["error"]
    assert told["type"] == "server_error" and "tokens read in a minute" in told["message"]
    assert len(greedy.all("response.created")) > 2
