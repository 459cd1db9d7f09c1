"""What clients on the server's machine may choose: language-model servers and kept conversations.

Once a client takes a language-model server, that server replies in every session that begins or is
resumed from then on, until a client takes another one or voiceloop's own language model. The user's
settings file keeps the choice for the next start. A client takes a server by its id; no address is
ever accepted from a client.

Whoever opens a kept conversation has its lease until it is closed. All that touches its file runs
on worker threads. This module does not know which clients are on this machine.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from voiceloop.assembly.choosing import ELSEWHERE, LLM_KEYS, Choosing, with_server
from voiceloop.assembly.loading import open_llm
from voiceloop.catalog.pulled import settings_of
from voiceloop.conversations.keeping import KeptConversation, claimed
from voiceloop.conversations.records import KeptOutline
from voiceloop.conversations.store import ConversationStore
from voiceloop.conversations.writer import ConversationWriter
from voiceloop.engines import Llm
from voiceloop.errors import ConfigError, VoiceloopError
from voiceloop.llm.remote.finding import find_servers
from voiceloop.llm.remote.servers import (
    NOWHERE,
    PORTS,
    LocalServer,
    ServerChoice,
    known_at,
    pick,
)
from voiceloop.settings.config import Config, Given, given_in_settings
from voiceloop.settings.files import keep, user_file
from voiceloop.wire.server_events import LlmServerUsed
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
        used: LocalServer | None = None,
    ) -> None:
        """`given` are the settings that come from files and flags, without those of the server
        `used`, which generates the replies now. A choice is kept in `file`, the user's settings
        file. `load` loads the language model of a configuration."""
        self._given = given
        self._file = file
        self._ports = ports
        self._load = load
        self._found: Mapping[str, LocalServer] = {}
        self._used = used
        self._lock = anyio.Lock()

    @staticmethod
    def of(command: Choosing) -> Offers | None:
        """Return the offers of a command. Return None if a language-model server of another machine
        generates the replies, if the command's options name or forbid one, or if the recogniser is
        the starter's, which understands synthetic voices only."""
        settings, used = command.settings, None
        if command.llm_server == NOWHERE or settings.asr.hears_no_people:
            return None
        given = dict(given_in_settings(settings, command.origins))
        if settings.llm.engine == ELSEWHERE:
            used = known_at(settings.llm.base_url, settings.llm.target)
            if used is None or any(given.pop(key, ("", ""))[1] == "flag" for key in LLM_KEYS):
                return None
        return Offers(given, user_file(), used=used)

    async def look(self) -> tuple[LlmServer, ...]:
        """Find the servers of this machine, and return those that can be taken. The one that
        generates the replies is always among them, with its model first. This takes at most a
        second."""
        before, ports = self._found, {*self._ports, *([self._used.port] if self._used else [])}
        self._found = {server.id: server for server in await find_servers(sorted(ports))}
        for server in self._found.values():
            if server.id not in before:
                logger.info("a language-model server is offered", extra=_logged(server))
        if used := self._used:
            here = next((one for one in self._found.values() if one.port == used.port), used)
            if not here.named:  # a server that is ending may answer some requests only
                here = replace(here, id=used.id, name=used.name)
            models = dict.fromkeys((used.models[0], *here.models))
            self._used = replace(here, models=tuple(models))
            others = {id: one for id, one in self._found.items() if one.port != here.port}
            self._found = {here.id: self._used, **others}
        return tuple(
            LlmServer(one.id, one.name, one.models, used=one is self._used)
            for one in self._found.values()
        )

    async def take(self, id: str, model: str) -> tuple[Llm, Config, LlmServerUsed]:
        """Take a model of the server with this id, or voiceloop's own language model for the id
        `NOWHERE`, and wait until it is ready. An empty `model` means the server's first. Return the
        language model, the configuration that uses it, and the event for the client.

        Raises ConfigError for what is not offered, and what loading the model raises.
        """
        async with self._lock:
            server, given = self._found.get(id), self._given
            if server is not None:
                server = pick(ServerChoice(id, model), [server])
                given = with_server(given, server, "chosen on the page")
            elif id != NOWHERE:
                raise ConfigError(
                    f"no language-model server called '{id}' is offered", "reload the page"
                )
            config, _ = settings_of(given)
            llm = await anyio.to_thread.run_sync(self._load, config, abandon_on_cancel=True)
            self._used = server
            logger.info("another language model replies from now on", extra=_logged(server))
            kept = await anyio.to_thread.run_sync(self._keep, server)
        return llm, config, LlmServerUsed(server.name if server else "", llm.name, kept)

    def _keep(self, server: LocalServer | None) -> str | None:
        """Keep the choice for the next start. Return the settings file; None if that failed."""
        own: dict[str, str | None] = {
            key: str(value)
            for key, (value, origin) in self._given.items()
            if key in (*LLM_KEYS, "llm.draft") and origin == str(self._file)
        }
        values = dict.fromkeys(LLM_KEYS) | own
        if server:
            values |= zip(LLM_KEYS, (ELSEWHERE, server.url, server.models[0]), strict=True)
        if server and "llm.draft" in own:
            values["llm.draft"] = "auto"  # the new engine would refuse a draft of the former model
        try:
            keep(values, self._file)
        except ConfigError as error:
            logger.warning("the choice could not be kept: %s; %s", error.message, error.hint)
            return None
        return str(self._file)


def _logged(server: LocalServer | None) -> dict[str, object]:
    if server is None:
        return {"server": "voiceloop"}
    return {"server": server.name, "model": server.models[0], "url": server.url}


MOST_OFFERED = 50
"""Maximum number of names of conversations that are sent to a client."""


class OpenedConversation:
    """A kept conversation that a session of this server has open."""

    def __init__(self, name: str, kept: KeptConversation, writer: ConversationWriter) -> None:
        self.name = name
        self.kept = kept
        self.over = anyio.Event()
        """Set when the conversation can be opened again."""
        self._writer = writer

    async def close(self) -> None:
        """Write all changes that are not in the store yet, and give the lease back."""
        try:
            await anyio.to_thread.run_sync(self._writer.close)
        finally:
            self.over.set()


class OfferedConversations:
    """The store of conversations, as one server offers it."""

    def __init__(self, path: Path) -> None:
        """Offer the conversations in the file `path`, which need not exist yet."""
        self._path = path
        self._untold = list[str]()

    async def names(self) -> tuple[str, ...]:
        """Return the names of the latest conversations, the latest first. Return no names if the
        store cannot be used: `open` then says why."""
        try:
            return await anyio.to_thread.run_sync(self._names)
        except (VoiceloopError, sqlite3.Error, msgspec.MsgspecError) as error:
            logger.warning("conversations cannot be listed", extra={"why": str(error)})
            return ()

    async def open(self, name: str) -> OpenedConversation:
        """Open the conversation `name`, or begin it if there is none of that name. Raises
        VoiceloopError if another process has it open, or if the store cannot be used."""
        found = await anyio.to_thread.run_sync(claimed, self._path, name, self._tell)
        return OpenedConversation(name, *found)

    def news(self) -> Sequence[str]:
        """Return and forget the messages for the user about damage of the store."""
        news, self._untold = self._untold, []
        return news

    def _names(self) -> tuple[str, ...]:
        if not self._path.exists():
            return ()
        with closing(ConversationStore(self._path, self._tell)) as store:
            latest = sorted(store.outlines(), key=_last, reverse=True)
        return tuple(outline.name for outline in latest[:MOST_OFFERED])

    def _tell(self, text: str) -> None:
        logger.warning("the store of conversations was damaged", extra={"why": text})
        self._untold.append(text)


def _last(outline: KeptOutline) -> datetime:
    return outline.last or outline.began
