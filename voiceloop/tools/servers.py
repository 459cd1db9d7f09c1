"""The MCP servers that the settings name, and a toolbox with their tools.

The official package `mcp` is imported only if there is a server.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from voiceloop.errors import ConfigError, MissingExtra
from voiceloop.foreign import parsed
from voiceloop.settings.config import MAX_BYTES, McpConfig, McpServer
from voiceloop.settings.schema import hints_of, suggestion
from voiceloop.tools.toolbox import Toolbox

HINT = "docs/tools.md has an example"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def configured(
    config: McpConfig, only: Collection[str] | None = None, environ: Mapping[str, str] = os.environ
) -> dict[str, McpServer]:
    """Return the MCP servers of the settings and of the file `mcp.file`, by name. If `only` is not
    None, return just the servers that it names.

    `${NAME}` in a server's variables and headers is replaced by the value in `environ`. Raises
    ConfigError for a wrong file or server, for an unknown name, and for a variable that is not in
    `environ`. Raises MissingExtra if there is a server and the package `mcp` is not installed.
    """
    found = _in_file(config.file) if config.file else {}
    found |= config.servers
    if only is not None:
        for name in only:
            if name not in found:
                raise ConfigError(f"there is no MCP server '{name}'", suggestion(name, found))
        found = {name: found[name] for name in only}
    servers = {name: _checked(name, server, environ) for name, server in found.items()}
    if servers and find_spec("mcp") is None:
        raise MissingExtra("the package for MCP servers", "mcp")
    return servers


@asynccontextmanager
async def equipped(
    toolbox: Toolbox, servers: Mapping[str, McpServer], note: Callable[[str], None]
) -> AsyncGenerator[Toolbox]:
    """Start `servers`, which run until the context ends. Yield a toolbox with the tools of
    `toolbox` and of the servers. `note` gets a line about each server that does not start, and
    about tools that are left out."""
    if not servers:
        yield toolbox
        return
    from voiceloop.tools.mcp import running

    async with running(servers, note) as offered:
        yield toolbox.extended(offered, note)


def _checked(name: str, server: McpServer, environ: Mapping[str, str]) -> McpServer:
    where = f"the MCP server '{name}'"
    if bool(server.command) == bool(server.url):
        what = "both a command and a url" if server.url else "neither a command nor a url"
        raise ConfigError(f"{where} has {what}", HINT)
    if server.url and not server.url.startswith(("http://", "https://")):
        raise ConfigError(f"the url of {where} begins neither with http:// nor https://", HINT)

    def filled(value: str) -> str:
        for variable in _VARIABLE.findall(value):
            if variable not in environ:
                raise ConfigError(f"{where} needs the variable {variable}", f"set {variable}")
        return _VARIABLE.sub(lambda found: environ[found[1]], value)

    return replace(
        server,
        env={key: filled(value) for key, value in server.env.items()},
        headers={key: filled(value) for key, value in server.headers.items()},
    )


def _in_file(name: str) -> dict[str, McpServer]:
    """Return the servers under `mcpServers` in the JSON file `name`, as other programs write it.
    Keys that voiceloop does not know are ignored. Servers that are marked as disabled are left
    out."""
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES >> 20} MiB", HINT)
        table: Any = parsed(text)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", "check mcp.file") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}", HINT) from error
    listed = table.get("mcpServers") if isinstance(table, dict) else None
    if not isinstance(listed, dict):
        raise ConfigError(f"{path} has no object under `mcpServers`", HINT)
    servers: dict[str, McpServer] = {}
    for key, about in cast("dict[str, Any]", listed).items():
        given = cast("dict[str, Any]", about) if isinstance(about, dict) else {}
        known = {field: given[field] for field in hints_of(McpServer) if field in given}
        if given.get("disabled") is True:
            continue
        try:
            servers[key] = msgspec.convert(known, McpServer)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{path}: the MCP server '{key}' is wrong: {error}", HINT) from None
    return servers
