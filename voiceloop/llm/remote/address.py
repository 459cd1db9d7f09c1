"""Find the address of a server of chat completions, and the API key for it.

A key is sent only to the host that it was set for, and never where others can read it. This module
opens no connection.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from voiceloop.errors import ConfigError
from voiceloop.llm.remote.localservers import KNOWN, ServerKind

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
