"""Tools of MCP servers. Only this module imports the official package `mcp`.

Each server has a task that opens and closes the connection to it. The connection is first opened to
list the server's tools. If the server has died, the next call opens the connection again. Nothing
else does, so a server that dies again and again is not restarted in a loop.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Tool

from voiceloop.errors import first_cause
from voiceloop.settings.config import McpServer
from voiceloop.tools.results import harmless, shortened
from voiceloop.tools.toolbox import ToolError, UserTool

START_S = 15.0
"""Seconds in which a server must have started and listed its tools."""
MOST_TOOLS, MOST_PAGES = 64, 16
"""Maximum number of tools that are offered of one server, and maximum number of pages that are read
of its list of tools."""
MOST_DESCRIPTION = 400
"""Maximum number of characters of the description of a tool."""
MOST_SCHEMA = 4000
"""Maximum number of characters of the JSON schema of a tool's arguments."""
CONNECT_S = 10.0
"""Seconds in which an HTTP server must accept a connection."""
_GONE = -32000
"""Code of the official package's error for a closed connection."""
_OF_CALLS = (-32601, -32602)
"""Codes of JSON-RPC for an unknown method and for wrong arguments. They do not mean that the server
has gone."""

logging.getLogger("mcp").addHandler(logging.NullHandler())  # else Python prints its warnings


class McpTool:
    """A tool of an MCP server."""

    def __init__(self, connection: McpConnection, listed: Any, *, confirm: bool) -> None:
        """Describe a tool as the server lists it. With `confirm`, the user is asked first."""
        server = connection.server
        self._connection = connection
        self.name: str = listed.name
        self.description = shortened(" ".join((listed.description or "").split()), MOST_DESCRIPTION)
        self.parameters = _schema(listed.input_schema)
        self.timeout_s = server.timeout_s
        self.outlives = False
        self.confirm = confirm

    async def run(self, arguments: Mapping[str, object]) -> object:
        """Call the tool on its server."""
        return await self._connection.call(self.name, dict(arguments))


class McpConnection:
    """A connection to one server. If the server has gone, the next call opens the connection
    again."""

    def __init__(self, name: str, server: McpServer) -> None:
        self.name = name
        self.server = server
        self._open: tuple[Client, anyio.Event] | None = None
        """The open client, and the event that is set once the server has gone. None while the
        server is not open."""
        self._invalid = set[str]()
        """Names of tools that the server lists in an invalid way."""
        self._problem = ""
        """The reason why the server could not be opened the last time."""
        self._wanted = anyio.Event()
        """Event that is set when a call needs the server."""
        self._settled = anyio.Event()
        """Event that is set when the server is open or could not be opened. A new event then takes
        its place."""

    async def keep(self) -> None:
        """Open the server whenever a call needs it, until cancelled."""
        while True:
            await self._wanted.wait()
            self._problem, waiting = f"it does not answer within {START_S:g} s", self._settled
            try:
                await self._hold_open(anyio.Event())
            except Exception as error:
                cause = first_cause(error)
                self._problem = str(cause) or type(cause).__name__
            self._open = None
            if not waiting.is_set():
                self._settle()

    def _settle(self) -> None:
        """Let the calls go on that wait for the server."""
        settled, self._settled = self._settled, anyio.Event()
        self._wanted = anyio.Event()
        settled.set()

    async def _hold_open(self, gone: anyio.Event) -> None:
        """Hold the server open until `gone` is set."""
        with anyio.CancelScope(deadline=anyio.current_time() + START_S) as opening:
            async with AsyncExitStack() as stack:
                transport = _noticed(await self._transport(stack), gone, self._invalid)
                client = await stack.enter_async_context(Client(transport))
                opening.deadline = math.inf
                self._open = client, gone
                self._settle()
                await gone.wait()
                self._open = None

    async def _transport(self, stack: AsyncExitStack) -> Any:
        server = self.server
        if server.url:
            timeout = httpx2.Timeout(CONNECT_S, read=server.timeout_s + CONNECT_S)
            http = httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout)
            return streamable_http_client(
                server.url, http_client=await stack.enter_async_context(http)
            )
        # What the program writes to stderr would be printed in the middle of the conversation.
        quiet = stack.enter_context(open(os.devnull, "w"))  # noqa: ASYNC230 - the null device
        # The package adds PATH, HOME and the like, and nothing else of our environment.
        program = StdioServerParameters(
            command=server.command, args=list(server.args), env=dict(server.env)
        )
        return stdio_client(program, errlog=quiet)

    async def _opened(self) -> tuple[Client, anyio.Event]:
        """Return the client and its event `gone`. If the server is not open, open it first. Raises
        ToolError if that fails."""
        if self._open is None:
            settled = self._settled
            self._wanted.set()
            await settled.wait()
        if self._open is None:
            raise ToolError(f"the MCP server '{self.name}' does not start: {self._problem}")
        return self._open

    def _lose(self, gone: anyio.Event) -> None:
        """Note that the server has gone, so that the next call opens it anew."""
        gone.set()
        if self._open and self._open[1] is gone:
            self._open = None

    async def tools(self, note: Callable[[str], None]) -> Sequence[McpTool]:
        """Return the tools that the server lists, at most `MOST_TOOLS`. Tools with a schema longer
        than `MOST_SCHEMA` are left out. If `confirm` names a tool that is not listed, the server
        may have renamed it, so the user is asked about all of them. `note` gets a line about
        either. Raises ToolError if the server does not start."""
        (client, _), found, cursor = await self._opened(), list[Any](), None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > MOST_TOOLS:
                break
        fitting = [
            listed for listed in found if len(json.dumps(listed.input_schema)) <= MOST_SCHEMA
        ]
        if left_out := len(found) - len(fitting[:MOST_TOOLS]):
            note(f"{left_out} tool(s) of '{self.name}' are left out: too long, or too many")
        if self._invalid:
            named = shortened(", ".join(sorted(self._invalid)), MOST_DESCRIPTION)
            note(f"tools of '{self.name}' are left out, since they are not valid: {named}")
        confirm = set(self.server.confirm)
        if unknown := confirm - {"*", *(listed.name for listed in found)}:
            named = shortened(", ".join(sorted(unknown)), MOST_DESCRIPTION)
            note(f"'{self.name}' has no tool {named} to confirm: you are asked about all it has")
        every = bool(unknown) or "*" in confirm
        return [
            McpTool(self, listed, confirm=every or listed.name in confirm)
            for listed in fitting[:MOST_TOOLS]
        ]

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool, and return the text of its result. Raises ToolError if it fails."""
        client, gone = await self._opened()
        try:
            result = await client.call_tool(tool, arguments)
        except MCPError as error:
            # An HTTP server that was started again no longer knows the session. It may report that
            # with any code.
            if error.error.code == _GONE or (self.server.url and error.error.code not in _OF_CALLS):
                self._lose(gone)
            if error.error.code != _GONE:
                raise ToolError(str(error)) from error
            raise ToolError(
                f"the server {self.name} has gone, maybe before it did what was asked"
            ) from error
        except Exception:
            self._lose(gone)  # the next call opens the server again, whatever the error was
            raise
        text = "\n".join(_text(part) for part in result.content)
        if result.is_error:
            raise ToolError(text or "the tool failed")
        if not text and result.structured_content is not None:
            return json.dumps(result.structured_content, ensure_ascii=False)
        return text


@asynccontextmanager
async def running(
    servers: Mapping[str, McpServer], note: Callable[[str], None]
) -> AsyncGenerator[Mapping[str, Sequence[UserTool]]]:
    """Start `servers` at the same time. Yield the tools of each server that starts. `note` gets a
    line about each server that does not start or has tools that are left out."""
    found = dict[str, Sequence[UserTool]]()

    async def list_tools(connection: McpConnection) -> None:
        try:
            with anyio.fail_after(START_S):
                found[connection.name] = await connection.tools(note)
        except TimeoutError:
            note(f"the MCP server '{connection.name}' does not answer within {START_S:g} s")
        except ToolError as error:
            note(" ".join(error.message.split()))
        except Exception as error:
            why = " ".join(repr(first_cause(error)).split())
            note(f"the MCP server '{connection.name}' does not list its tools: {why}")

    async with anyio.create_task_group() as keepers:
        async with anyio.create_task_group() as starting:
            for name, server in servers.items():
                connection = McpConnection(name, server)
                keepers.start_soon(connection.keep)
                starting.start_soon(list_tools, connection)
        yield {name: found[name] for name in servers if name in found}
        keepers.cancel_scope.cancel()


@asynccontextmanager
async def _noticed(transport: Any, gone: anyio.Event, invalid: set[str]) -> AsyncGenerator[Any]:
    """Yield the two streams of `transport`. Set `gone` when the server has closed the connection.
    Add the names of tools that are not valid to `invalid`, and take these tools out of the lists:
    the official package refuses a whole list for one of them."""
    async with transport as (read, write):
        yield _Noticing(read, gone, invalid), write


class _Noticing:
    """A stream of messages from a server, without invalid tools. At the end of the stream it sets
    the event `gone`."""

    def __init__(self, stream: Any, gone: anyio.Event, invalid: set[str]) -> None:
        self._stream, self._gone, self._invalid = stream, gone, invalid

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Noticing:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> Any:
        """Return the next message. Raises anyio.EndOfStream at the end."""
        try:
            received = await self._stream.receive()
        except anyio.EndOfStream:
            self._gone.set()
            raise
        result = getattr(getattr(received, "message", None), "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            listed, result["tools"] = result["tools"], []
            for one in listed:
                if _is_tool(one):
                    result["tools"].append(one)
                else:
                    self._invalid.add(_name(one))
        return received

    async def __aenter__(self) -> _Noticing:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


def _is_tool(listed: Any) -> bool:
    """Return whether an entry of a list is a tool with a schema of an object, as the protocol
    demands."""
    try:
        schema = Tool.model_validate(listed).input_schema
    except ValueError:
        return False
    return schema.get("type") == "object"


def _name(listed: Any) -> str:
    name = listed.get("name") if isinstance(listed, dict) else None
    return name if isinstance(name, str) and name else "(without a name)"


def _schema(schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return the schema of a tool's arguments without texts that could steer the model."""
    known: dict[str, object] = json.loads(harmless(json.dumps(schema, ensure_ascii=False)))
    known.pop("$schema", None)
    return known


def _text(part: Any) -> str:
    """Return the text of one part of a result. For a part without text, return its type in
    brackets, with the name and the address of a link."""
    if (text := getattr(part, "text", None)) is not None:
        return str(text)
    if (text := getattr(getattr(part, "resource", None), "text", None)) is not None:
        return str(text)
    link = (str(getattr(part, key, None) or "") for key in ("name", "uri"))
    return f"({' '.join(filter(None, (part.type, *link)))})"
