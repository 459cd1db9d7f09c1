"""Kept conversations on the page of this machine, over real sockets and scripted engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.server.offering import STORY, offering
from tests.server.serving import Client, Event, Serving, until
from voiceloop.conversations.records import KeptRecord
from voiceloop.conversations.store import ConversationStore
from voiceloop.errors import VoiceloopError

pytestmark = pytest.mark.real

OPEN = "voiceloop.conversation.open"
ASKED, ANSWERED = ("user", "Who is speaking?"), ("assistant", "The scripted one.")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "conversations.sqlite3"


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Serving]:
    with offering(store.parent, store.parent / "config.toml", store=store) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def page(server: Serving) -> Client:
    """The server's own page, opened on this machine."""
    return Client(server.url, origin=server.page)


def opened(server: Serving, name: str) -> Client:
    """The page, which goes on with a conversation."""
    client = page(server)
    client.send(OPEN, name=name)
    client.wait("session.created", where=lambda one: told(one).get("conversation") == name)
    return client


def told(event: Event) -> dict[str, Any]:
    return event["session"]["voiceloop"]


def settings(client: Client, **session: Any) -> dict[str, Any]:
    """What is told of the session after a change of it."""
    since = len(client.events)
    client.send("session.update", session={"type": "realtime", **session})
    return told(client.wait("session.updated", since=since))


def names(client: Client) -> list[str]:
    return told(client.wait("session.updated", where=lambda one: "conversations" in told(one)))[
        "conversations"
    ]


def items(client: Client) -> list[tuple[str, str]]:
    """Role and words of the messages that the client was told."""
    found = [event["item"] for event in client.all("conversation.item.done")]
    return [
        (one["role"], part.get("text") or part.get("transcript"))
        for one in found
        if one["type"] == "message"
        for part in one["content"]
    ]


def record(store: Path, name: str) -> KeptRecord:
    with closing(ConversationStore(store, lambda text: None)) as opened:
        return opened.record(name)


def free(store: Path, name: str) -> None:
    """Wait until nobody has a conversation open."""

    def claimed() -> bool:
        with closing(ConversationStore(store, lambda text: None)) as opened:
            try:
                opened.claim(name)
            except VoiceloopError:
                return False
            return True

    until(claimed)


def test_it_goes_on_where_it_was_left(server: Serving, store: Path) -> None:
    with opened(server, "Küche 1") as client:
        assert items(client) == []
        client.write("Who is speaking?")
        client.write("Remember that my sister is called Anna.")
        # Its client comes back by the name, so it gets no token.
        assert settings(client, voiceloop={"resume": True})["conversation"] == "Küche 1"
        assert not client.all("voiceloop.session.token")
    with opened(server, "Küche 1") as client:
        client.wait("conversation.item.done", where=lambda one: "Anna" in str(one))
        assert names(client)[0] == "Küche 1"
        until(lambda: len(items(client)) == 4)
        assert items(client)[:2] == [ASKED, ANSWERED]
        assert "Anna" in str(client.write("What do you remember about me?")["output"])
    free(store, "Küche 1")
    found = record(store, "Küche 1")
    assert [turn.said for turn in found.turns][::2] == [
        "Who is speaking?",
        "What do you remember about me?",
    ]
    assert all(turn.heard == turn.replied and turn.outcome == "done" for turn in found.turns)
    assert [fact.text for fact in found.facts] == ["my sister is called Anna"]
    assert '"may_return":true' not in server.log.read_text().replace(" ", "")


def test_of_a_reply_that_breaks_off_what_was_heard_is_kept(server: Serving, store: Path) -> None:
    with opened(server, "story") as client:
        client.create("Tell me a story")
        client.send("response.create")
        client.wait("response.output_audio.delta")
        until(lambda: bool(record(store, "story").turns and record(store, "story").turns[0].words))
        client.drop()
    with opened(server, "story") as client:
        asked, cut = (client.wait("conversation.item.done", where=_of(role)) for role in ROLES)
        assert asked["item"]["content"][0]["transcript"] == "Tell me a story"
        heard = cut["item"]["content"][0]["transcript"]
        assert cut["item"]["status"] == "incomplete", record(store, "story")
        assert heard and STORY.startswith(heard) and heard != STORY


ROLES = ("user", "assistant")


def _of(role: str) -> Any:
    return lambda event: event["item"].get("role") == role


def test_the_newest_page_has_it(server: Serving) -> None:
    with opened(server, "one") as first:
        first.write("Who is speaking?")
        with opened(server, "one") as second:
            until(lambda: first.closed is not None)
            assert first.socket.close_code == 1008 and "another connection" in str(first.closed)
            until(lambda: items(second) == [ASKED, ANSWERED])


@pytest.mark.parametrize(
    ("name", "says"), [("", "the name is empty"), ("../a", "the name is a path"), (7, "be text")]
)
def test_a_name_that_is_none_is_refused(server: Serving, name: object, says: str) -> None:
    with page(server) as client:
        client.send(OPEN, name=name)
        error = client.wait("error")["error"]
        assert error["param"] == "name" and says in error["message"]
        assert "conversation" not in settings(client)


def test_what_another_process_has_is_not_taken(server: Serving, store: Path) -> None:
    with closing(ConversationStore(store, lambda text: None)) as mine:
        mine.claim("mine")
        with page(server) as client:
            client.send(OPEN, name="mine", event_id="first")
            error = client.wait("error")["error"]
            assert error["param"] == "name" and error["event_id"] == "first"
            assert "open in another voiceloop" in error["message"]
            assert "conversation" not in settings(client)
            client.write("Who is speaking?")
    assert record(store, "mine").turns == ()


def test_it_comes_first_and_only_a_page_of_this_machine_may_ask(server: Serving) -> None:
    with page(server) as client:
        settings(client)
        client.send(OPEN, name="late")
        assert "comes first" in client.wait("error")["error"]["message"]
    with Client(server.url) as program:
        program.send(OPEN, name="theirs")
        assert program.wait("error")["error"]["code"] == "not_permitted"
        assert not {"conversations", "conversation"} & settings(program).keys()
    with Client(f"{server.url}?intent=transcription", origin=server.page) as client:
        client.send(OPEN, name="heard")
        assert "gives no responses" in client.wait("error")["error"]["message"]


def test_a_store_that_cannot_be_used_is_told(server: Serving, store: Path) -> None:
    with opened(server, "before") as client:
        client.write("Who is speaking?")
    free(store, "before")
    store.write_bytes(b"\x00no database" * 1000)
    with opened(server, "new") as client:
        error = client.wait("error")["error"]
        assert error["type"] == "server_error" and "is damaged, and was moved" in str(error)
        client.write("Who is speaking?")
    free(store, "new")
    assert len(record(store, "new").turns) == 1
    store.unlink()
    store.mkdir()
    with page(server) as client:
        client.send(OPEN, name="new")
        assert "cannot be used" in client.wait("error")["error"]["message"]
        client.write("Who is speaking?")
