"""The toolbox: all tools of the user that a language model may call, and how they are called.

This module knows neither turns nor models. A call always returns a text for the model, even if the
tool fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import anyio
import msgspec

from voiceloop.errors import ConfigError, VoiceloopError, first_cause
from voiceloop.skills.tools import TOOLS
from voiceloop.tools.declared import declared
from voiceloop.tools.results import MOST_CHARS, data, error
from voiceloop.types import Tool, ToolCall

MOST_NAME = 64
"""Maximum number of characters of the name of a tool, for chat servers."""
MOST_AT_ONCE = 8
"""Maximum number of calls that run at the same time; others wait."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


class UserTool(Protocol):
    """A tool of the user. `run` may raise any error; the model then gets the error as the
    result."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, object]: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def outlives(self) -> bool: ...
    @property
    def confirm(self) -> bool: ...
    async def run(self, arguments: Mapping[str, object]) -> object:
        """Do the tool's work, and return the result."""
        ...


class ToolError(VoiceloopError):
    """A tool could not do its work. The message is for the model."""


class Toolbox:
    """The tools of the user, by name."""

    def __init__(
        self, functions: Iterable[Callable[..., Any]] = (), *, most_chars: int = MOST_CHARS
    ) -> None:
        """Offer `functions`, whether or not they are decorated by `tool`. A result has at most
        `most_chars` characters. Raises ConfigError for a function that cannot be offered, and for
        two functions with the same name."""
        self._tools: dict[str, UserTool] = {}
        self._most_chars = most_chars
        self._places = anyio.CapacityLimiter(MOST_AT_ONCE)
        for tool in map(declared, functions):
            if tool.name in self._tools:
                raise ConfigError(
                    f"two tools are called {tool.name}", "give one of the functions another name"
                )
            self._tools[tool.name] = tool

    def extended(
        self, servers: Mapping[str, Sequence[UserTool]], note: Callable[[str], None]
    ) -> Toolbox:
        """Return a toolbox that also offers the tools of `servers`, given by the servers' names.

        If another tool, or one of voiceloop's own, has the name of a tool already, the server's
        name is put before the name. `note` gets a line about each tool that is left out.
        """
        more = Toolbox(most_chars=self._most_chars)
        more._tools |= self._tools
        built_in = {tool.name for tool in TOOLS}
        for server, tools in servers.items():
            for tool in tools:
                name = _fit(tool.name)
                if name in more or name in built_in:
                    name = _fit(f"{server}_{name}")
                if name in more:
                    note(f"two tools of '{server}' are called {tool.name}: one is left out")
                    continue
                more._tools[name] = tool
        return more

    @property
    def offered(self) -> Sequence[Tool]:
        """The tools as the language model reads them: name, description and schema of the
        arguments."""
        return tuple(
            Tool(name, tool.description, tool.parameters) for name, tool in self._tools.items()
        )

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    def outlives(self, name: str) -> bool:
        """Return whether a call of the tool `name` goes on if the user interrupts the reply."""
        return self._tools[name].outlives

    def confirms(self, name: str) -> bool:
        """Return whether the user must agree to each call of the tool `name`."""
        return self._tools[name].confirm

    async def call(self, call: ToolCall) -> str:
        """Run the tool that `call` names, and return its result as JSON for the model. If the tool
        fails or takes too long, the result is an error."""
        tool = self._tools[call.name]
        try:
            with anyio.fail_after(tool.timeout_s):
                async with self._places:
                    result = await tool.run(call.arguments)
        except TimeoutError:
            return error(f"{tool.name} took longer than {tool.timeout_s:g} s and was given up")
        except ToolError as failure:
            return error(failure.message)
        except msgspec.ValidationError as failure:
            return error(f"wrong arguments: {failure}")
        except Exception as failure:
            cause = first_cause(failure)
            return error(f"{tool.name} failed: {cause or type(cause).__name__}")
        return data(result, self._most_chars)


def _fit(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:MOST_NAME]


NO_TOOLS = Toolbox()
"""A toolbox without tools."""
