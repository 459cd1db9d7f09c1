"""A connection over a transport of three methods, on the virtual clock; websockets is elsewhere."""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup
from msgspec.structs import replace

from tests.fakes import Script
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.engines import Engines
from voiceloop.server.access.limits import PATIENCE_S, POLICY, Kind, Refusal, Ticket
from voiceloop.server.ops.metrics import Metrics
from voiceloop.server.resume.registry import SessionRegistry
from voiceloop.server.resume.store import MemoryStore, Store
from voiceloop.server.session.connection import (
    GOODBYE_S,
    MOST_ERRORS,
    Connection,
    Disconnected,
)
from voiceloop.server.session.outbox import ENOUGH_BYTES
from voiceloop.settings.config import Config, ServerConfig

pytestmark = pytest.mark.virtual

WIRE_RATE = 24_000
STORY = "Once upon a time there was a fox. It lived in the woods. Nobody had ever seen it."
WORD_S = 0.1
"""How long each of its words sounds."""
Told = dict[str, Any]


class Wire:
    """A transport whose client is the test."""

    def __init__(self) -> None:
        self.waiting = deque[str]()
        """Messages of the client that nobody has taken yet."""
        self._gone = False
        self.reads = anyio.Event()
        """Set where the client reads what it is sent."""
        self.reads.set()
        self.told: list[Told] = []
        self.closed: tuple[int, str] | None = None
        self._changed = anyio.Event()

    def say(self, kind: str, **fields: object) -> None:
        self.waiting.append(json.dumps({"type": kind, **fields}))
        self._wake()

    def hang_up(self) -> None:
        self._gone = True
        self.reads.set()
        self._wake()

    async def receive(self) -> str | bytes:
        while not self.waiting:
            if self._gone:
                raise Disconnected
            await self._changed.wait()
        return self.waiting.popleft()

    async def send(self, message: str | bytes) -> None:
        if not self.reads.is_set():
            await self.reads.wait()
        if self._gone:
            raise Disconnected
        self.told.append(json.loads(message))
        self._wake()

    async def close(self, code: int, reason: str) -> None:
        self.closed = code, reason
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def all(self, kind: str) -> list[Told]:
        return [event for event in self.told if event["type"] == kind]

    async def wait(self, kind: str) -> Told:
        """The first event of its kind."""
        with anyio.fail_after(60):
            while not self.all(kind):
                await self._changed.wait()
        return self.all(kind)[0]

    async def end(self) -> tuple[int, str]:
        """How it was closed; waits for it."""
        with anyio.fail_after(60):
            while self.closed is None:
                await self._changed.wait()
        return self.closed


class Server:
    """A registry over scripted engines, and the connections that are open."""

    def __init__(self, tasks: TaskGroup, store: Store | None = None, **limits: float) -> None:
        script = Script([], 1.0)
        self.llm = llm = ScriptedLlm({"Hello": ("Good day.",), "Tell me": (STORY,)})
        tts = ScriptedTts(rate=RATE)
        run = InlineRunner
        engines = Engines(ScriptedVad(), ScriptedAsr(script), run(), llm, run(), tts, run())
        self.limits = replace(ServerConfig(), **limits)
        self.metrics = Metrics()
        self.registry = SessionRegistry(
            engines,
            replace(Config(), server=self.limits),
            self.metrics,
            lambda: None,
            store or MemoryStore(),
        )
        self.tasks = tasks

    async def connect(self) -> tuple[Wire, Connection]:
        wire, ticket = Wire(), await self.registry.admit(None)
        assert isinstance(ticket, Ticket)
        connection = Connection(wire, self.registry, ticket, self.limits, self.metrics)

        async def serve() -> None:
            await connection.run()
            await self.registry.leave(connection)

        self.tasks.start_soon(serve)
        return wire, connection


@asynccontextmanager
async def server(**limits: float) -> AsyncGenerator[Server]:
    async with anyio.create_task_group() as tasks:
        yield Server(tasks, None, **limits)
        tasks.cancel_scope.cancel()


def audio(seconds: float) -> str:
    return base64.b64encode(bytes(2 * round(seconds * WIRE_RATE))).decode()


def write(wire: Wire, text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    wire.say("conversation.item.create", item=item)


async def test_what_is_asked_is_answered_until_the_client_hangs_up() -> None:
    async with server() as own:
        wire, connection = await own.connect()
        await wire.wait("session.created")
        write(wire, "Hello")
        wire.say("response.create")
        response = (await wire.wait("response.done"))["response"]
        assert response["status"] == "completed"
        assert len(own.registry) == 1
        wire.hang_up()
        await connection.over.wait()
        await anyio.sleep(0.1)
        assert len(own.registry) == 0
        assert wire.closed is None, "nobody is there to say goodbye to"


async def test_tokens_of_responses_beside_others_are_charged_too() -> None:
    async with server(generated_tokens_per_min=60) as own:
        wire, _ = await own.connect()
        await wire.wait("session.created")
        content = [{"type": "input_text", "text": "Tell me"}]
        given = [{"type": "message", "role": "user", "content": content}]
        about = {"conversation": "none", "input": given, "instructions": "Be brief."}
        about["output_modalities"] = ["text"]
        for _ in range(60 // len(STORY.split()) + 1):
            wire.say("response.create", response=about)
        assert (await wire.end())[0] == POLICY
        assert "tokens written in a minute" in wire.told[-1]["error"]["message"]


async def test_a_client_that_does_not_read_is_waited_for_no_longer_than_said() -> None:
    async with server() as own:
        wire, connection = await own.connect()
        await wire.wait("session.created")
        wire.reads = anyio.Event()
        for _ in range(3):
            wire.say("input_audio_buffer.clear")
        await anyio.sleep(0.1)
        begun = anyio.current_time()
        connection.close(POLICY, "enough")
        assert await wire.end() == (POLICY, "enough")
        assert anyio.current_time() - begun == pytest.approx(GOODBYE_S)


async def test_more_audio_than_may_wait_is_refused_and_the_session_goes_on() -> None:
    async with server(audio_backlog_s=1.0) as own:
        wire, _ = await own.connect()
        wire.say("input_audio_buffer.append", audio=audio(1.1), event_id="much")
        error = (await wire.wait("error"))["error"]
        assert (error["code"], error["event_id"]) == ("rate_limit_exceeded", "much")
        assert "1 s of audio wait to be recognised" in error["message"]
        wire.say("input_audio_buffer.append", audio=audio(1.0))
        wire.say("input_audio_buffer.clear")
        await wire.wait("input_audio_buffer.cleared")
        assert len(wire.all("error")) == 1


async def test_who_is_a_little_ahead_is_read_later_and_who_is_far_ahead_is_told() -> None:
    async with server(audio_ahead_s=10.0) as own:
        wire, _ = await own.connect()
        await wire.wait("session.created")
        begun = anyio.current_time()
        wire.say("input_audio_buffer.append", audio=audio(10.0))
        wire.say("input_audio_buffer.append", audio=audio(PATIENCE_S - 0.1))
        wire.say("input_audio_buffer.clear")
        await wire.wait("input_audio_buffer.cleared")
        assert anyio.current_time() - begun == pytest.approx(PATIENCE_S - 0.1, abs=0.05)
        assert not wire.all("error")
        wire.say("input_audio_buffer.append", audio=audio(PATIENCE_S + 0.1))
        error = (await wire.wait("error"))["error"]
        assert "ahead of real time" in error["message"]
        assert 'voiceloop_refused_total{reason="audio"} 1.0' in own.metrics.render()[0].decode()


async def test_a_client_that_does_not_read_is_asked_no_more() -> None:
    async with server() as own:
        wire, _ = await own.connect()
        await wire.wait("session.created")
        wire.reads = anyio.Event()
        for _ in range(20):
            write(wire, "x" * 200_000)
        await anyio.sleep(1)
        taken = 20 - len(wire.waiting)
        assert ENOUGH_BYTES / 400_000 - 2 <= taken <= ENOUGH_BYTES / 200_000 + 2
        wire.reads.set()
        await anyio.sleep(1)
        assert not wire.waiting


async def test_who_does_not_read_for_more_than_a_minute_of_speech_is_given_up() -> None:
    async with server() as own:
        own.llm.replies = {"Lecture": (f"{STORY} ",) * 110}  # of more than 3 minutes
        wire, _ = await own.connect()
        await wire.wait("session.created")
        write(wire, "Lecture")
        wire.say("response.create")
        await wire.wait("response.output_audio.delta")
        wire.reads = anyio.Event()
        await anyio.sleep(60)
        assert wire.closed is None
        await anyio.sleep(120)
        assert wire.closed == (POLICY, "the client reads too slowly")


async def test_nothing_but_nonsense_ends_it_and_one_good_message_is_enough_to_go_on() -> None:
    async with server() as own:
        wire, _ = await own.connect()
        for _ in range(MOST_ERRORS - 1):
            wire.say("nonsense")
        wire.say("input_audio_buffer.clear")
        for _ in range(MOST_ERRORS - 1):
            wire.say("nonsense")
        await anyio.sleep(1)
        assert len(wire.all("error")) == 2 * (MOST_ERRORS - 1)
        assert wire.closed is None
        wire.say("nonsense")
        assert await wire.end() == (POLICY, "too many messages that are none")


@pytest.mark.parametrize(
    ("limits", "ends_at", "text"),
    [
        ({"idle_s": 30.0}, 40.0, "nothing was heard from the client for 30 s"),
        ({"session_s": 30.0}, 30.0, "a session lasts 30 s at most"),
    ],
)
async def test_who_is_idle_or_stays_too_long_is_sent_away(
    limits: dict[str, float], ends_at: float, text: str
) -> None:
    async with server(**limits) as own:
        begun = anyio.current_time()
        wire, _ = await own.connect()
        await anyio.sleep(10)
        wire.say("input_audio_buffer.clear")
        assert await wire.end() == (POLICY, text)
        assert anyio.current_time() - begun == pytest.approx(ends_at, abs=0.01)


# ---- coming back


async def token(wire: Wire) -> str:
    asked = {"resume": True, "clauses": True, "binary_audio": False}
    wire.say("session.update", session={"type": "realtime", "voiceloop": asked})
    return (await wire.wait("voiceloop.session.token"))["token"]


async def test_who_comes_back_has_its_session_and_the_old_connection_is_closed() -> None:
    async with server() as own:
        old, _ = await own.connect()
        first = await token(old)
        write(old, "Hello")
        await old.wait("conversation.item.done")
        new, _ = await own.connect()
        new.say("voiceloop.resume", token=first)
        await new.wait("voiceloop.session.resumed")
        kinds = [event["type"] for event in new.told]
        assert kinds[:2] == ["session.created", "voiceloop.session.resumed"]
        assert "conversation.item.added" in kinds
        second = (await new.wait("voiceloop.session.token"))["token"]
        assert second != first
        assert old.closed == (POLICY, "the session is on another connection now, or over")
        await anyio.sleep(0.1)
        assert len(own.registry) == 1, "the one that the new connection began with is over"


def told_again(wire: Wire) -> list[tuple[str, str, str]]:
    """Role, status and words of the items that a client is told when it has come back."""
    items = [event["item"] for event in wire.all("conversation.item.done")]
    parts = [part for item in items for part in item["content"]]
    words = [part.get("text") or part.get("transcript") or "" for part in parts]
    return [(one["role"], one["status"], text) for one, text in zip(items, words, strict=True)]


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.5, 1.2, 9.0])
async def test_who_leaves_in_the_middle_of_a_reply_finds_what_was_heard_of_it(
    seconds: float,
) -> None:
    async with server() as own:
        old, connection = await own.connect()
        first = await token(old)
        write(old, "Tell me")
        old.say("response.create")
        await old.wait("response.output_audio.delta")
        await anyio.sleep(seconds)
        old.hang_up()
        await connection.over.wait()
        new, _ = await own.connect()
        new.say("voiceloop.resume", token=first)
        await new.wait("voiceloop.session.token")
        (asked, (role, status, heard)) = told_again(new)
        assert asked == ("user", "completed", "Tell me")
        assert role == "assistant"
        whole = seconds > len(STORY.split()) * WORD_S
        assert status == ("completed" if whole else "incomplete")
        words = STORY.split() if whole else STORY.split()[: len(heard.split())]
        assert heard.split() == words
        if not whole:
            assert len(words) * WORD_S == pytest.approx(seconds, abs=WORD_S)


async def test_where_each_clause_begins_in_the_audio_is_told() -> None:
    async with server() as own:
        wire, _ = await own.connect()
        await token(wire)
        write(wire, "Tell me")
        wire.say("response.create")
        await wire.wait("response.done")
        told, begins_s = wire.all("voiceloop.output.clause"), 0.0
        assert len(told) > 1 and " ".join(one["text"].strip() for one in told) == STORY
        for clause in told:
            assert clause["audio_ms"] / 1000 == pytest.approx(begins_s, abs=0.01)
            begins_s += len(clause["text"].split()) * WORD_S
        deltas = wire.all("response.output_audio.delta")
        sounds_s = sum(len(base64.b64decode(one["delta"])) for one in deltas) / 2 / WIRE_RATE
        assert sounds_s == pytest.approx(begins_s, abs=0.1)


async def test_a_session_that_waits_takes_nobodys_place() -> None:
    async with server(max_sessions=2) as own:
        mine, connection = await own.connect()
        first = await token(mine)
        write(mine, "Hello")
        await mine.wait("conversation.item.done")
        mine.hang_up()
        await connection.over.wait()
        await anyio.sleep(0.1)
        (_, one), (other, _) = await own.connect(), await own.connect()
        assert own.registry.full
        assert len(own.registry) == 3
        refused = await own.registry.admit(None)
        assert isinstance(refused, Refusal)
        assert refused.reason is Kind.SESSIONS
        one.close(POLICY, "enough")
        await one.over.wait()
        await anyio.sleep(0.1)
        back, _ = await own.connect()
        back.say("voiceloop.resume", token=first)
        await back.wait("voiceloop.session.resumed")
        assert told_again(back) == [("user", "completed", "Hello")]
        assert own.registry.full
        assert other.closed is None


@pytest.mark.parametrize("known", [True, False])
async def test_a_token_is_spent_once_its_successor_has_arrived(known: bool) -> None:
    async with server() as own:
        old, _ = await own.connect()
        first = await token(old)
        old.say("voiceloop.session.token.received")
        new, _ = await own.connect()
        new.say("voiceloop.resume", token=first)
        await new.wait("voiceloop.session.token")
        if known:
            new.say("voiceloop.session.token.received")
            await anyio.sleep(0.1)
        third, _ = await own.connect()
        third.say("voiceloop.resume", token=first)
        if known:
            assert (await third.wait("error"))["error"]["code"] == "resume_failed"
            refused = b'voiceloop_refused_total{reason="replayed_token"} 1.0'
            assert refused in own.metrics.render()[0]
        else:
            await third.wait("voiceloop.session.resumed")
        assert new.closed is not None, "of the two who have held it nobody is left with it"
        await anyio.sleep(0.1)
        assert len(own.registry) == 1


async def test_to_resume_comes_first_or_not_at_all() -> None:
    async with server() as own:
        wire, _ = await own.connect()
        first = await token(wire)
        wire.say("voiceloop.resume", token=first)
        assert (await wire.wait("error"))["error"]["code"] == "resume_failed"
        assert wire.closed is None


async def test_who_has_a_token_is_waited_for_unless_the_server_goes_down() -> None:
    for closing in (False, True):
        async with server() as own:
            wire, connection = await own.connect()
            await token(wire)
            own.registry.closing = closing
            wire.hang_up()
            await connection.over.wait()
            await anyio.sleep(0.1)
            assert len(own.registry) == (0 if closing else 1)


async def test_of_sessions_that_wait_too_many_are_over_and_so_are_those_that_wait_too_long() -> (
    None
):
    async with server(max_parked_per_key=2, resume_s=30.0) as own:
        own.tasks.start_soon(own.registry.expire)
        for _ in range(3):
            wire, connection = await own.connect()
            await token(wire)
            wire.hang_up()
            await connection.over.wait()
        await anyio.sleep(0.1)
        assert len(own.registry) == 2
        await anyio.sleep(29)
        assert len(own.registry) == 2
        await anyio.sleep(2)
        assert len(own.registry) == 0
