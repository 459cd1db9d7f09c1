"""The language-model servers of this machine, which are offered to clients on it.

Once a client takes a server, that server replies in every session that begins or is resumed from
then on. The user's settings file keeps the choice for the next start.

A client takes a server by its id; no address is ever accepted from a client. This module does not
know which clients are on this machine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from voiceloop.catalog.pulled import settings_of
from voiceloop.choosing import ELSEWHERE, LLM_KEYS, Choosing, with_server
from voiceloop.config import Config, Given, given_in_settings, user_file
from voiceloop.engines import Llm
from voiceloop.errors import ConfigError
from voiceloop.llm.remote.finding import find_servers
from voiceloop.llm.remote.localservers import NOWHERE, PORTS, LocalServer
from voiceloop.loading import open_llm
from voiceloop.userfile import keep
from voiceloop.wire.extensions import LlmServerUsed
from voiceloop.wire.settings import LlmServer

logger = logging.getLogger(__name__)


class Offers:
    """The language-model servers that one voiceloop server offers."""

    def __init__(
        self,
        given: Given,
        file: Path,
        ports: Sequence[int] = PORTS,
        load: Callable[[Config], Llm] = open_llm,
    ) -> None:
        """`given` are the settings that come from files and flags. A choice is kept in `file`, the
        user's settings file. `load` loads the language model of a configuration."""
        self._given = given
        self._file = file
        self._ports = ports
        self._load = load
        self._found: Mapping[str, LocalServer] = {}
        self._taken = False
        self._lock = anyio.Lock()

    @staticmethod
    def of(command: Choosing) -> Offers | None:
        """Return the offers of a command. Return None if a language-model server generates the
        replies already, if the command's options forbid one, or if the recogniser is the starter's,
        which understands synthetic voices only."""
        settings, wanted = command.settings, command.llm_server != NOWHERE
        if not wanted or settings.llm.engine == ELSEWHERE or settings.asr.hears_no_people:
            return None
        return Offers(given_in_settings(settings, command.origins), user_file())

    async def look(self) -> tuple[LlmServer, ...]:
        """Find the servers of this machine, and return those that can be taken. After a client has
        taken a server, return no servers. This takes at most a second."""
        if self._taken:
            return ()
        self._found = {server.id: server for server in await find_servers(self._ports)}
        for server in self._found.values():
            logger.info("a language-model server is offered", extra=_logged(server))
        return tuple(LlmServer(one.id, one.name, one.models) for one in self._found.values())

    async def take(self, id: str) -> tuple[Llm, Config, LlmServerUsed]:
        """Take the server with this id, and wait until it has replied. Return its language model,
        the configuration that uses it, and the event for the client.

        Raises ConfigError for a server that is not offered, and what loading the model raises.
        """
        async with self._lock:
            server = self._found.get(id)
            if server is None or self._taken:
                raise ConfigError(
                    f"no language-model server called '{id}' is offered", "reload the page"
                )
            given = with_server(self._given, server, "chosen on the page")
            config, _ = settings_of(given)
            llm = await anyio.to_thread.run_sync(self._load, config, abandon_on_cancel=True)
            self._taken = True
            logger.info("a language-model server replies from now on", extra=_logged(server))
            kept = await anyio.to_thread.run_sync(self._keep, server)
        return llm, config, LlmServerUsed(server.name, server.models[0], kept)

    def _keep(self, server: LocalServer) -> str | None:
        """Keep the choice for the next start. Return the settings file; None if that failed."""
        values = dict(zip(LLM_KEYS, (ELSEWHERE, server.url, server.models[0]), strict=True))
        if self._given.get("llm.draft", ("", ""))[1] == str(self._file):
            values["llm.draft"] = "auto"  # the new engine would refuse a draft of the former model
        try:
            keep(values, self._file)
        except ConfigError as error:
            logger.warning("the choice could not be kept: %s; %s", error.message, error.hint)
            return None
        return str(self._file)


def _logged(server: LocalServer) -> dict[str, object]:
    return {"server": server.name, "model": server.models[0], "url": server.url}
