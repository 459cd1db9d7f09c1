"""Describe servers of language models: their addresses and keys, and those on the user's own
machine with their kinds and their models that can hold a conversation.

A key is sent only to the host that it was set for, and never where others can read it. The answers
of servers on this machine are not trusted: they are parsed only here, and unexpected data is left
out. This module opens no connection.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from voiceloop.errors import ConfigError
from voiceloop.foreign import entries, mapping, parsed
from voiceloop.settings.schema import nearest

HOST = "127.0.0.1"
"""Address of this machine. It is not written as a host name, because that could lead to another
machine."""
MODELS = "v1/models"
"""Path at which servers of chat completions list their models."""
TAGS, LOADED = "api/tags", "api/ps"
"""Paths at which Ollama describes its models (`TAGS`), and lists the models in memory
(`LOADED`)."""
LATEST = ":latest"
"""Suffix that Ollama adds to the names of models. Ollama leaves it out in what it shows to
people."""
MOST_MODELS = 100
"""Maximum number of models that are read from one server's list."""
LONGEST_NAME = 200
"""Maximum number of characters in a model's name."""


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of server, such as Ollama."""

    id: str
    """Name of the kind on the command line, e.g. `lm-studio`."""
    name: str
    port: int
    """Default port."""
    sign: str = ""
    """Path at which only this kind answers with a JSON object that has the key `mark`. Empty if
    there is no such path."""
    mark: str = ""
    owner: str = ""
    """Value of `owned_by` in this kind's list of models. Empty if it is not known."""
    starts: str = ""
    """The command that starts it; empty if it takes arguments. Only a kind with such a command is
    recognised by its port alone."""


KNOWN = (
    ServerKind(
        "ollama", "Ollama", 11434, sign="api/version", mark="version", starts="ollama serve"
    ),
    ServerKind(
        "lm-studio", "LM Studio", 1234, sign="api/v0/models", mark="data", starts="lms server start"
    ),
    ServerKind("llama.cpp", "llama.cpp", 8080, owner="llamacpp"),
    ServerKind("vllm", "vLLM", 8000, owner="vllm"),
)
"""Kinds of servers that are searched for. The user is offered the servers in this order."""
PORTS = tuple(known.port for known in KNOWN)
_LISTS = (MODELS, TAGS, "api/v0/models")
"""Paths with answers that describe models, under the key `data` or `models`."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server on this machine with a model that can hold a conversation."""

    id: str
    """Name of the server on the command line: its kind or its port. No two servers that were found
    have the same one."""
    name: str
    port: int
    models: tuple[str, ...]
    """Names of the server's models for conversations, at least one. The first is the default."""

    @property
    def url(self) -> str:
        """Value of `llm.base_url` for this server."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def named(self) -> bool:
        """Whether the server has told its kind."""
        return self.name != _unnamed(self.port)

    @property
    def told(self) -> str:
        """One line for the user that says which server runs here, and with which models."""
        more = len(self.models) - 1
        others = f" and {more} more" if more else ""
        name = self.name[0].upper() + self.name[1:] if self.name.startswith("a ") else self.name
        return f"{name} is running here with {self.models[0]}{others}"


def _unnamed(port: int) -> str:
    return f"a server at port {port}"


def paths(port: int) -> tuple[str, ...]:
    """Return the paths to request at `port`. If no kind uses `port` by default, these are the paths
    of all kinds."""
    usual = [known for known in KNOWN if known.port == port] or KNOWN
    signs = [known.sign for known in usual if known.sign]
    ollama = (TAGS, LOADED) if KNOWN[0] in usual else ()
    return (MODELS, *signs, *ollama)


def read_server(port: int, answers: Mapping[str, bytes]) -> LocalServer | None:
    """Return the server at `port`; None if none of its models can hold a conversation. `answers`
    are the bodies of the server's responses, by path."""
    found = {path: _value(body) for path, body in answers.items()}
    facts: dict[str, list[Mapping[str, Any]]] = {}
    for path in _LISTS:
        for model in _models(found.get(path)):
            facts.setdefault(_name(model), []).append(model)
    listed = [_name(model) for model in _models(found.get(MODELS))][:MOST_MODELS]
    names = [name for name in dict.fromkeys(listed) if _can_talk(name, facts[name])]
    if not names:
        return None
    loaded = {_name(model) for model in _models(found.get(LOADED))}
    loaded |= {name for name in names if any(m.get("state") == "loaded" for m in facts[name])}
    models = sorted(names, key=lambda name: name not in loaded)
    kind = _kind(found, facts[models[0]])
    if kind is None:
        return LocalServer(str(port), _unnamed(port), port, tuple(models))
    if kind is KNOWN[0]:
        models = [name.removesuffix(LATEST) for name in models]
    return LocalServer(kind.id, kind.name, port, tuple(models))


def known_at(url: str, model: str) -> LocalServer | None:
    """Return the server of this machine at `url`, a value of `llm.base_url`, as far as its port
    tells what it is, with `model` alone. Return None for an address of another machine."""
    here = _HERE.fullmatch(url)
    if here is None:
        return None
    port = int(here[1])
    kind = next((known for known in KNOWN if known.port == port), None)
    id, name = (kind.id, kind.name) if kind else (here[1], _unnamed(port))
    return LocalServer(id, name, port, (model,))


def told_apart(servers: Iterable[LocalServer]) -> list[LocalServer]:
    """Return `servers` with different ids. If several servers have the same id, all but the first
    get their port as id."""
    known: dict[str, LocalServer] = {}
    for server in servers:
        own = str(server.port) if server.id in known else server.id
        known[own] = LocalServer(own, server.name, server.port, server.models)
    return list(known.values())


# Addresses and keys ------------------------------------------------------------------------------

OPENAI = "api.openai.com"
USUAL = ", ".join(f"{one.name} is at http://localhost:{one.port}/v1" for one in KNOWN)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server, and the API key for it."""

    url: str
    """The server's URL without a slash at the end, e.g. `http://localhost:11434/v1`."""
    host: str
    """Host name for messages to the user, with the port if the URL has one."""
    loopback: bool
    metered: bool
    """Whether somebody may have to pay for each token."""
    key: str = field(repr=False)
    """API key; empty if none is set."""
    kind: ServerKind | None = None
    """Kind of the server, if its port is enough to know it."""

    @property
    def told(self) -> str:
        """The server in messages to the user, such as `Ollama at 127.0.0.1:11434`."""
        return f"{self.kind.name} at {self.host}" if self.kind else self.host

    @property
    def key_name(self) -> str:
        """Name of the environment variable that holds the key."""
        return "OPENAI_API_KEY" if self.host == OPENAI else "VOICELOOP_LLM_KEY"


def address(url: str, environ: Mapping[str, str]) -> Address:
    """Return the address of the server at `url`, with its key from the environment variables
    `environ`.

    OPENAI_API_KEY is used only for OpenAI's own server, VOICELOOP_LLM_KEY for any server. Raises
    ConfigError for an invalid URL or key, and for a key that would be sent unencrypted.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(f"llm.base_url is no address: '{url}'", USUAL) from None
    name = (parts.hostname or "").rstrip(".")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            "llm.base_url may hold a host and a path alone: no user, password or query",
            "keys come from the environment: set VOICELOOP_LLM_KEY",
        )
    if parts.scheme not in ("http", "https") or not name:
        raise ConfigError(f"llm.base_url must begin with http:// or https://, not '{url}'", USUAL)
    host = f"[{name}]" if ":" in name else name
    host = host if port is None else f"{host}:{port}"
    loopback, near = _nearness(name)
    openai = environ.get("OPENAI_API_KEY", "") if host == OPENAI else ""
    key = (environ.get("VOICELOOP_LLM_KEY", "") or openai).strip()
    if key and parts.scheme == "http" and not loopback:
        raise ConfigError(
            f"the key would go to {host} where everybody on the way can read it",
            "write llm.base_url with https://, or take the key out of the environment",
        )
    if not re.fullmatch(r"[!-~]*", key):
        raise ConfigError(
            "the key in the environment holds characters that no key has", "copy it again"
        )
    kind = next((one for one in KNOWN if one.starts and one.port == port), None)
    return Address(url.rstrip("/"), host, loopback, bool(key) or not near, key, kind)


def _nearness(host: str) -> tuple[bool, bool]:
    """Return whether `host` is this machine, and whether it is in the user's own network. This
    machine counts as in that network."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        loopback = host == "localhost" or host.endswith(".localhost")
        own = "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa"))
        return loopback, loopback or own
    return ip.is_loopback, ip.is_loopback or ip.is_private


# The user's choice --------------------------------------------------------------------------------

NOWHERE = "none"
"""Value of `--llm-server` for no server and no search."""
KINDS = (*(known.id for known in KNOWN), NOWHERE)
_HERE = re.compile(r"(?:http://)?(?:localhost|127\.0\.0\.1|\[::1\]):(\d{1,5})(?:/v1)?(?:/+(.*))?")


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """Value of `--llm-server`."""

    id: str
    """A kind of server, such as `ollama`, or a port, or `NOWHERE`; empty for any server that has
    the model."""
    model: str = ""
    """Name of the model; empty for the server's default."""

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports to search."""
        return (int(self.id),) if self.id.isdecimal() else PORTS


def read_asked(text: str) -> ServerChoice:
    """Parse a value of `--llm-server`: `NOWHERE`, or the kind, port or local address of a server. A
    slash and a model's name may follow, e.g. `ollama/llama3.2`. Any other text counts as a model's
    name alone.

    Raises ConfigError for a port or an address that cannot be one of this machine.
    """
    here = _HERE.fullmatch(text)
    name, _, model = text.partition("/")
    choice = ServerChoice(here[1], here[2] or "") if here else ServerChoice(name.lower(), model)
    if choice.id.isdecimal() and not 1 <= int(choice.id) <= 65_535:
        raise ConfigError(f"there is no port {choice.id}", "ports are from 1 to 65535")
    if not here and "://" in text:
        raise ConfigError(
            "--llm-server takes the address of a server on this machine, such as "
            f"http://localhost:11434, not {text}",
            "for others: --llm.engine openai --llm.base-url URL --llm.target MODEL",
        )
    return choice if choice.id.isdecimal() or choice.id in KINDS else ServerChoice("", text)


def having(model: str, servers: Iterable[LocalServer]) -> LocalServer | None:
    """Return the first of `servers` that has `model`, with that model first in its list; None if
    none has it."""
    for server in servers:
        for name in (model, model.removesuffix(LATEST)):
            if name in server.models:
                others = (one for one in server.models if one != name)
                return replace(server, models=(name, *others))
    return None


def pick(choice: ServerChoice, found: Sequence[LocalServer]) -> LocalServer:
    """Return the server of `found` that is chosen, with the chosen model first in its list. Raises
    ConfigError if the server does not run here or has no such model."""
    if not choice.id:
        if server := having(choice.model, found):
            return server
        near = nearest(choice.model, (*KINDS, *(name for one in found for name in one.models)))
        hint = f"choose one of: {', '.join(KINDS)}, a port, or an address on this machine"
        raise ConfigError(
            f"--llm-server knows no '{choice.model}', neither a server nor a model of one here",
            f"did you mean '{near}'?" if near else hint,
        )
    server = next((one for one in found if choice.id in (one.id, str(one.port))), None)
    if server is None:
        kind = next((known for known in KNOWN if known.id == choice.id), None)
        name = kind.name if kind else f"port {choice.id}"
        start = f"start it with `{kind.starts}`" if kind and kind.starts else "start it"
        others = " and ".join(f"{one.name} (--llm-server {one.id})" for one in found)
        raise ConfigError(
            f"{name} on this machine does not answer, or has no model that chats",
            f"there is {others}" if others else f"{start}, and fetch a model for it",
        )
    if not choice.model:
        return server
    chosen = having(choice.model, [server])
    if chosen is None:
        near = nearest(choice.model, server.models)
        raise ConfigError(
            f"{server.name} has no model to chat that is called '{choice.model}'",
            f"did you mean '{near}'?" if near else f"it has: {', '.join(server.models[:8])}",
        )
    return chosen


# The answers of a server --------------------------------------------------------------------------

_SILENT = re.compile(
    r"(?:^|[^a-z])(?:embed|rerank|(?:whisper|bert|nomic-bert|bge|gte|e5|minilm|clip|tts|asr|"
    r"kokoro|piper|diffusion|flux|moderation|guard\d*)(?![a-z]))",
    re.IGNORECASE,
)
"""A pattern in names, types and families of models that do not chat. They embed, rank, recognise
speech, speak or draw."""


def _can_talk(name: str, facts: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the model `name` can chat and runs on this machine. `facts` are its
    descriptions in the server's answers."""
    words = [name]
    for fact in facts:
        family = mapping(fact.get("details")).get("family")
        words += [word for word in (fact.get("type"), family) if isinstance(word, str)]
        able = entries(fact.get("capabilities"))
        if "embedding" in able and "completion" not in able:
            return False
        if fact.get("remote_host"):  # Ollama would send the words elsewhere
            return False
    return not any(map(_SILENT.search, words))


def _kind(found: Mapping[str, Any], facts: Sequence[Mapping[str, Any]]) -> ServerKind | None:
    owners = {fact.get("owned_by") for fact in facts if isinstance(fact.get("owned_by"), str)}
    for known in KNOWN:
        told = known.mark in mapping(found.get(known.sign))
        if told or (known.owner and known.owner in owners):
            return known
    return None


def _models(answer: object) -> list[Mapping[str, Any]]:
    """Return the models in an answer that have a usable name."""
    table = mapping(answer)
    listed = table.get("data") if isinstance(table.get("data"), list) else table.get("models")
    return [model for model in map(mapping, entries(listed)) if _name(model)]


def _name(model: Mapping[str, Any]) -> str:
    name = next((model[key] for key in ("id", "name", "model") if key in model), None)
    if not isinstance(name, str) or len(name) > LONGEST_NAME or name != name.strip():
        return ""
    return name if name.isprintable() else ""


def _value(body: bytes) -> object:
    try:
        return parsed(body)
    except ValueError:
        return None
