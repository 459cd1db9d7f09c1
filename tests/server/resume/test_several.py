"""Servers that share a store of sessions: a client goes on at another one, with what was said."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio
import pytest

from tests.server.session.test_connection import Server, Wire, token, told_again, write
from voiceloop.server.access.limits import POLICY
from voiceloop.server.resume.registry import BEAT_S
from voiceloop.server.resume.sessions import Sessions
from voiceloop.server.resume.store import MemoryStore, StoredValue, StoreError
from voiceloop.skills.known import Answer, Timer
from voiceloop.types import Past

pytestmark = pytest.mark.virtual

ELSEWHERE = (POLICY, "the session is on another connection now, or over")


class SharedStore(MemoryStore):
    """A store that several servers of a test share. It fails while told to."""

    shared = True
    failing = False

    async def read(self, name: str) -> StoredValue | None:
        self._fail()
        return await super().read(name)

    async def swap(
        self, name: str, before: StoredValue | None, value: bytes, keep_s: float
    ) -> StoredValue | None:
        self._fail()
        return await super().swap(name, before, value, keep_s)

    async def touch(self, name: str, stored: StoredValue, keep_s: float) -> bool:
        self._fail()
        return await super().touch(name, stored, keep_s)

    def _fail(self) -> None:
        if self.failing:
            raise StoreError("the store is not there")

    def forget(self) -> None:
        self._values.clear()


class Several:
    """Servers that share a store. One of them can die."""

    def __init__(self) -> None:
        self.store = SharedStore()

    @asynccontextmanager
    async def server(self, **limits: float) -> AsyncGenerator[Server]:
        """A server. At the end of the context it dies: it says nothing to anybody."""
        async with anyio.create_task_group() as tasks:
            yield Server(tasks, self.store, **limits)
            tasks.cancel_scope.cancel()


async def answered(wire: Wire, text: str) -> None:
    """Have a text answered, and wait until the turn has ended."""
    write(wire, text)
    wire.say("response.create")
    await wire.wait("response.done")
    await anyio.sleep(10)


async def come_back(server: Server, shown: str) -> Wire:
    """A client that shows a token to a server, and is told the session's items or an error."""
    wire, _ = await server.connect()
    wire.say("voiceloop.resume", token=shown)
    await anyio.sleep(0.5)
    assert bool(wire.all("voiceloop.session.token")) != bool(wire.all("error")), wire.told
    return wire


def refused(wire: Wire) -> str:
    """The hint of the error with which a client was not given a session."""
    (error,) = wire.all("error")
    assert error["error"]["code"] == "resume_failed"
    return error["error"]["message"]


async def test_after_a_server_has_died_another_one_knows_what_was_said() -> None:
    several = Several()
    async with several.server() as first:
        wire, _ = await first.connect()
        shown = await token(wire)
        await answered(wire, "Hello")
        first.tasks.cancel_scope.cancel()
    async with several.server() as second:
        back = await come_back(second, shown)
        assert told_again(back) == [
            ("user", "completed", "Hello"),
            ("assistant", "completed", "Good day."),
        ]
        read = [what for did, what in second.llm.log if did == "rewrite"]
        assert read[-1] == ("", (Past("Hello", ("Good day.",)),))
        await answered(back, "Tell me")
        assert back.closed is None


async def test_a_client_that_comes_back_here_after_it_was_there_has_all_of_it() -> None:
    several = Several()
    async with several.server() as here, several.server() as there:
        wire, connection = await here.connect()
        shown = await token(wire)
        await answered(wire, "Hello")
        wire.hang_up()
        await connection.over.wait()
        away = await come_back(there, shown)
        shown = away.all("voiceloop.session.token")[0]["token"]
        await answered(away, "Tell me")
        back = await come_back(here, shown)
        assert [text for _, _, text in told_again(back)][::2] == ["Hello", "Tell me"]
        await anyio.sleep(BEAT_S + 0.1)
        assert away.closed == ELSEWHERE
        assert back.closed is None
        assert (len(here.registry), len(there.registry)) == (1, 0)


async def test_whoever_shows_a_token_twice_on_two_servers_ends_the_session_for_both() -> None:
    several = Several()
    async with several.server() as here, several.server() as there:
        wire, _ = await here.connect()
        shown = await token(wire)
        await answered(wire, "Hello")
        owner = await come_back(there, shown)
        owner.say("voiceloop.session.token.received")
        await anyio.sleep(0.1)
        thief = await come_back(here, shown)
        assert "cannot be resumed" in refused(thief)
        assert not thief.all("conversation.item.added")
        await anyio.sleep(BEAT_S + 0.1)
        assert owner.closed == wire.closed == ELSEWHERE
        fresh = owner.all("voiceloop.session.token")[0]["token"]
        assert "cannot be resumed" in refused(await come_back(there, fresh))


async def test_settings_timers_and_voice_come_along() -> None:
    several = Several()
    async with several.server() as first:
        wire, connection = await first.connect()
        shown = await token(wire)
        instructions = "Answer like a pirate."
        wire.say("session.update", session={"type": "realtime", "instructions": instructions})
        dialogue = connection.dialogue
        timer = Timer(0, "timer", datetime.now().astimezone() + timedelta(hours=1), 3600, "tea")
        dialogue.skills.do(Answer("The timer is set.", sets=[timer]))
        dialogue.skills.note("Set a timer for my tea.", "The timer is set.", None)
        await answered(wire, "Hello")
        first.tasks.cancel_scope.cancel()
    async with several.server() as second:
        wire, connection = await second.connect()
        wire.say("voiceloop.resume", token=shown)
        await wire.wait("voiceloop.session.resumed")
        taken = connection.dialogue
        assert taken is not dialogue
        assert taken.settings == dialogue.settings
        assert taken.settings.instructions == instructions
        assert [one.name for one in taken.skills.timers] == ["tea"]
        assert taken.skills.memory() == dialogue.skills.memory()
        assert taken.snapshot() == dialogue.snapshot()


async def test_a_conversation_that_no_server_can_read_is_not_resumed() -> None:
    several = Several()
    async with several.server() as here, several.server() as there:
        wire, connection = await here.connect()
        shown = await token(wire)
        assert connection.kept.holding is not None
        assert await Sessions(several.store, 60, 8).save(connection.kept.holding, b"\xc1")
        back = await come_back(there, shown)
        assert "cannot be resumed" in refused(back)
        await answered(back, "Hello")
        assert len(there.registry) == 1


# ---- a store that fails


async def test_while_the_store_fails_conversations_go_on_and_clients_are_told() -> None:
    several = Several()
    async with several.server() as server:
        old, connection = await server.connect()
        shown = await token(old)
        several.store.failing = True
        wire, _ = await server.connect()
        asked = {"type": "realtime", "voiceloop": {"resume": True}}
        wire.say("session.update", session=asked)
        assert "the store of sessions fails" in (await wire.wait("error"))["error"]["message"]
        await answered(wire, "Hello")
        assert len(wire.all("error")) == 1
        await answered(old, "Hello")
        assert "try again later" in refused(await come_back(server, shown))
        assert b"voiceloop_store_failures_total 0.0" not in server.metrics.render()[0]
        several.store.failing = False
        wire.say("session.update", session=asked)
        await wire.wait("voiceloop.session.token")
        await anyio.sleep(2 * BEAT_S)
        assert old.closed is None
        old.hang_up()
        await connection.over.wait()
        await anyio.sleep(0.1)
        back = await come_back(server, shown)
        assert told_again(back)[0] == ("user", "completed", "Hello")


async def test_what_the_store_has_lost_is_kept_anew() -> None:
    several = Several()
    async with several.server() as here, several.server() as there:
        wire, _ = await here.connect()
        shown = await token(wire)
        await answered(wire, "Hello")
        several.store.forget()
        await anyio.sleep(BEAT_S + 0.1)
        assert wire.closed is None
        assert told_again(await come_back(there, shown))[0] == ("user", "completed", "Hello")


async def test_a_server_that_ends_leaves_its_sessions_to_the_others() -> None:
    several = Several()
    async with several.server() as first:
        wire, connection = await first.connect()
        shown = await token(wire)
        await answered(wire, "Hello")
        first.registry.closing = True
        connection.close(1001, "going")
        await wire.end()
        await anyio.sleep(0.1)
        assert len(first.registry) == 0
    async with several.server() as second:
        assert told_again(await come_back(second, shown))[0] == ("user", "completed", "Hello")
