"""Tokens of sessions over real sockets: those that are stolen, spent, or shown by two at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from websockets.exceptions import InvalidStatus

from tests.server.serving import PATIENCE_S, Client, Serving, serving, until

pytestmark = pytest.mark.real

KEYS = ("a-key-of-the-owner-01234567890123456", "another-key-0123456789012345678901")
OWNER, OTHER = ({"Authorization": f"Bearer {key}"} for key in KEYS)
PLACES = 8
QUESTION, ANSWER = "What is 7 times 8?", "56"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("tokens")
    file = folder / "keys"
    file.write_text("\n".join(KEYS))
    file.chmod(0o600)
    options = ("--api-key-file", str(file), "--server.max-sessions", str(PLACES))
    options += ("--server.max-sessions-per-key", str(PLACES), "--server.resume-s", "8")
    with serving(folder, *options) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


@pytest.fixture(autouse=True)
def all_places_are_free(server: Serving) -> Iterator[None]:
    """However a session ended, its place has been given back."""
    yield
    free_places(server)


def free_places(server: Serving) -> None:
    """Take all places there are, and leave them again; waits for those that are being left."""
    deadline = time.monotonic() + PATIENCE_S
    with ExitStack() as stack:
        taken = 0
        while taken < PLACES:
            try:
                stack.enter_context(client(server, OWNER))
                taken += 1
            except InvalidStatus:
                assert time.monotonic() < deadline, f"{PLACES - taken} places are lost"
                time.sleep(0.1)


def client(server: Serving, key: dict[str, str]) -> Client:
    one = Client(server.url, additional_headers=key)
    one.wait("session.created")
    return one


def begun(server: Serving) -> tuple[Client, str]:
    """A client that has talked, and its token."""
    one = client(server, OWNER)
    one.update(voiceloop={"resume": True}, output_modalities=["text"])
    token = one.wait("voiceloop.session.token")["token"]
    assert ANSWER in str(one.write(QUESTION)["output"])
    return one, token


def goes_on(one: Client) -> bool:
    """Whether a client is in a session that answers."""
    return "Paris" in str(one.write("What is the capital of France?")["output"])


def shows(one: Client, token: str) -> str:
    """What a client hears that shows a token: `resumed`, `refused`, or `closed`."""
    one.send("voiceloop.resume", token=token)
    while one.closed is None:
        if one.all("voiceloop.session.resumed"):
            return "resumed"
        if one.all("error"):
            assert one.wait("error")["error"]["code"] == "resume_failed"
            return "refused"
        time.sleep(0.005)
    # It may have been told, and sent away for another, between two looks.
    return "resumed" if one.all("voiceloop.session.resumed") else "closed"


def is_closed(one: Client) -> bool:
    """Whether the server has closed a connection because of what another client did."""
    until(lambda: one.closed is not None)
    return one.socket.close_code == 1008


def test_under_another_key_a_token_is_unknown_and_changes_nothing(server: Serving) -> None:
    owner, token = begun(server)
    with owner, client(server, OTHER) as thief:
        assert shows(thief, token) == "refused"
        assert goes_on(thief)
        assert goes_on(owner)
        with client(server, OWNER) as again:
            assert shows(again, token) == "resumed"
            assert is_closed(owner)
            assert goes_on(again)


@pytest.mark.parametrize("there", [True, False], ids=["connected", "parked"])
def test_a_token_that_is_shown_twice_ends_the_session_for_both(
    server: Serving, there: bool
) -> None:
    owner, token = begun(server)
    owner.drop()
    with owner, client(server, OWNER) as again:
        assert shows(again, token) == "resumed"
        fresh = again.wait("voiceloop.session.token")["token"]
        again.send("voiceloop.session.token.received")
        assert goes_on(again)
        if not there:
            again.drop()
        with client(server, OWNER) as thief, client(server, OWNER) as third:
            assert shows(thief, token) == "refused"
            assert not there or is_closed(again)
            assert not thief.all("conversation.item.added")
            assert goes_on(thief)
            assert shows(third, fresh) == "refused"
            assert goes_on(third)


@pytest.mark.parametrize("racers", [2, 3])
def test_of_those_that_show_a_token_at_once_one_has_the_session_at_most(
    server: Serving, racers: int
) -> None:
    for _ in range(8):
        owner, token = begun(server)
        owner.drop()
        with ExitStack() as stack:
            stack.enter_context(owner)
            clients = [stack.enter_context(client(server, OWNER)) for _ in range(racers)]
            heard = at_once(clients, token)
            assert "resumed" in heard
            resumed = [one for one, what in zip(clients, heard, strict=True) if what == "resumed"]
            # Whoever was last has it; or the token was spent by then, and nobody has.
            until_left(resumed, 0 if "refused" in heard else 1)
            for one in clients:
                assert one.closed is None or one.socket.close_code == 1008
                assert one.closed is not None or goes_on(one)


def until_left(clients: list[Client], count: int) -> None:
    """Wait until all but so many have been sent away."""
    until(lambda: sum(one.closed is None for one in clients) == count)


def at_once(clients: list[Client], token: str) -> list[str]:
    """What each hears when all show the token in the same moment."""
    heard = [""] * len(clients)
    start = threading.Barrier(len(clients))

    def show(index: int) -> None:
        start.wait()
        heard[index] = shows(clients[index], token)

    threads = [threading.Thread(target=show, args=(index,)) for index in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    return heard


def test_who_leaves_while_it_takes_up_a_session_takes_no_place_with_it(server: Serving) -> None:
    for _ in range(8):
        owner, token = begun(server)
        with owner, client(server, OWNER) as hasty, client(server, OWNER) as other:
            hasty.send("voiceloop.resume", token=token)
            hasty.drop()
            assert shows(other, token) in ("resumed", "refused")
