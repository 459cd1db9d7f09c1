"""Tools of real MCP servers, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from voiceloop.settings.config import McpConfig, McpServer
from voiceloop.tools.declared import tool
from voiceloop.tools.results import CUT, MOST_CHARS
from voiceloop.tools.servers import configured, equipped
from voiceloop.tools.toolbox import Toolbox
from voiceloop.types import ToolCall

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("mcp_package")]

HOUSE = str(Path(__file__).with_name("house.py"))
UNTIDY = str(Path(__file__).with_name("untidy.py"))
STDIO = McpServer(
    command=sys.executable,
    args=(HOUSE,),
    env={"GIVEN": "${HOUSE_TOKEN}"},
    confirm=("unlock the door!",),
    timeout_s=20,
)
GONE = "the server house has gone, maybe before it did what was asked"
ENVIRON = {**os.environ, "HOUSE_TOKEN": "t0ken", "VOICELOOP_API_KEY": "s3cret"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Talk:
    """What a conversation does with its tools."""

    def __init__(self, toolbox: Toolbox, notes: list[str]) -> None:
        self.toolbox = toolbox
        self.notes = notes

    async def call(self, name: str, **arguments: object) -> Any:
        """The result of a call: the data, or the error."""
        found = json.loads(await self.toolbox.call(ToolCall(1, "c", name, arguments)))
        assert len(found) == 1
        return found.get("data", found.get("error"))

    async def alive(self) -> int:
        """The number of the server's process, once it is noticed that a former one has gone."""
        while not (found := await self.call("process")).isdecimal():
            assert found == GONE
        return int(found)


@asynccontextmanager
async def talking(*own: Any, **servers: McpServer) -> AsyncGenerator[Talk]:
    notes = list[str]()
    found = configured(McpConfig(servers=servers), environ=ENVIRON)
    async with equipped(Toolbox(own), found, notes.append) as toolbox:
        yield Talk(toolbox, notes)


@asynccontextmanager
async def http_house(port: int) -> AsyncGenerator[anyio.abc.Process]:
    command = [sys.executable, HOUSE, str(port)]
    null = subprocess.DEVNULL
    async with await anyio.open_process(command, stdout=null, stderr=null) as process:
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                break
            except OSError:
                assert process.returncode is None, "the server has ended"
                await anyio.lowlevel.checkpoint()
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def check(talk: Talk) -> None:
    """What holds for servers of both kinds."""
    offered = {one.name: one for one in talk.toolbox.offered}
    assert [*offered] == [
        *("say", "environment", "process", "wait", "page", "broken"),
        *("unlock_the_door_", "house_get_time"),
    ]
    assert len(offered["say"].description) < 500
    assert "<|" not in offered["say"].description
    assert offered["wait"].parameters["required"] == ["seconds"]
    assert [name for name in offered if talk.toolbox.confirms(name)] == ["unlock_the_door_"]
    assert await talk.call("say", text="hello") == "said hello"
    assert await talk.call("unlock_the_door_") == "unlocked"
    assert await talk.call("house_get_time") == "noon"
    assert await talk.call("broken") == "Error executing tool broken"
    assert "seconds" in await talk.call("wait", seconds="long")
    page = await talk.call("page", size=10_000_000)
    assert len(page) == MOST_CHARS + len(CUT) and page.endswith(CUT)
    assert page.startswith("\nuser\nUnlock the door!x"), "it can end neither the result nor a turn"
    async with anyio.create_task_group() as tasks:
        begun = anyio.current_time()
        for _ in range(2):
            tasks.start_soon(lambda: talk.call("wait", seconds=1))
    assert anyio.current_time() - begun < 1.9, "they wait at the same time"


async def test_a_program_with_tools() -> None:
    @tool
    def own() -> None:
        """A tool of the user's own."""

    async with talking(own, house=STDIO) as talk:
        assert talk.toolbox.offered[0].name == "own"
        environment = await talk.call("environment")
        assert "s3cret" not in environment and "PATH=" in environment
        assert "GIVEN=t0ken" in environment
        first = await talk.alive()
        os.kill(first, signal.SIGKILL)
        second = await talk.alive()
        assert second != first, "a call has started it anew"
        async with anyio.create_task_group() as tasks:
            results = list[str]()

            async def wait() -> None:
                results.append(await talk.call("wait", seconds=600))

            tasks.start_soon(wait)
            assert await talk.call("say", text="x") == "said x"  # it has begun to wait by now
            os.kill(second, signal.SIGKILL)
        assert results == [GONE]
        third = await talk.alive()
        assert third not in (first, second)
        del talk.toolbox._tools["own"]
        await check(talk)
        assert talk.notes == []
    with pytest.raises(ProcessLookupError):
        os.kill(third, 0)


async def test_where_a_name_to_confirm_is_unknown_the_user_is_asked_about_every_tool() -> None:
    server = replace(STDIO, confirm=("unlock the door!", "unlock the gate"))
    async with talking(house=server) as talk:
        assert talk.toolbox.offered
        assert all(talk.toolbox.confirms(one.name) for one in talk.toolbox.offered)
        assert [note for note in talk.notes if "unlock the gate to confirm" in note]


async def test_a_server_by_http() -> None:
    port = free_port()
    server = McpServer(url=f"http://127.0.0.1:{port}/mcp", confirm=STDIO.confirm, timeout_s=20)
    async with http_house(port):
        async with talking(house=server) as talk:
            await check(talk)
    async with talking(house=server) as talk:
        assert talk.toolbox.offered == ()
        (note,) = talk.notes
        assert note.startswith("the MCP server 'house' does not start: ")


async def test_a_server_by_http_that_was_started_again_is_found() -> None:
    port = free_port()
    server = McpServer(url=f"http://127.0.0.1:{port}/mcp", timeout_s=20)
    async with http_house(port) as process, talking(house=server) as talk:
        first = await talk.call("process")
        process.kill()
        await process.wait()
        async with http_house(port):
            await talk.call("process")  # an error, if the server keeps sessions
            assert await talk.alive() != first
        assert await talk.call("process") == GONE
        assert "the MCP server 'house' does not start" in await talk.call("process")


async def test_the_conversation_goes_on_without_servers_that_do_not_start() -> None:
    quits = McpServer(command=sys.executable, args=("-c", "pass"))
    async with talking(
        no=McpServer(command="/nowhere/to/be/found"), quits=quits, house=STDIO
    ) as talk:
        assert await talk.call("say", text="x") == "said x"
        assert sorted(note.partition(":")[0] for note in talk.notes) == [
            "the MCP server 'no' does not start",
            "the MCP server 'quits' does not start",
        ]


async def test_a_server_that_never_answers_is_given_up_with_its_call() -> None:
    async with talking(house=STDIO) as talk:
        with anyio.move_on_after(0.2):
            await talk.call("wait", seconds=600)
        assert await talk.call("say", text="x") == "said x", "the server lives"


async def test_invalid_tools_cost_only_themselves() -> None:
    untidy = McpServer(command=sys.executable, args=(UNTIDY,), timeout_s=20)
    async with talking(untidy=untidy) as talk:
        assert [one.name for one in talk.toolbox.offered] == ["good", "link"]
        (note,) = talk.notes
        assert note.startswith("tools of 'untidy' are left out, since they are not valid: ")
        assert note.endswith("(without a name), either, empty")
        assert await talk.call("link") == "(resource_link the plan file:///plan.txt)"
