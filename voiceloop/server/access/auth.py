"""Access control: who may connect, decided from the request and its headers before all else.

Five things are checked. *Host*: the server answers only to its own names. So a page cannot reach it
under a name that the page's owner has pointed here (DNS rebinding). *Origin*: a browser lets any
page open a socket to any server, but sends the page's origin, which must be on a list. Requests of
other pages that have no origin, for images and scripts, are known by `Sec-Fetch-Site`. *Key*: if
other machines can connect, a client must show an API key. *Peer*: a server without keys answers
only to connections from a loopback address, whatever program listens for it. *Proxies*: a forwarded
request comes from elsewhere, even if its last hop is on this machine. So a server without keys
refuses it.

Headers are kept as pairs in the order in which they came, so that duplicates can be seen and
refused: if a header has two values, a proxy and this server might each use a different value. This
module knows neither sockets nor where keys are kept. Its refusals repeat nothing of the request.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from urllib.parse import parse_qsl

from voiceloop.errors import ConfigError
from voiceloop.server.access.keys import Keyring
from voiceloop.server.port import Binding, check_binding, is_loopback

HeaderList = Sequence[tuple[str, str]]
"""All headers of a request in order, as pairs of name and value. Names may have capitals."""

PROTOCOL = "realtime"
"""The websocket subprotocol that the server speaks."""
KEY_PROTOCOL = "openai-insecure-api-key."
"""Prefix of the subprotocol with which pages send a key, since they cannot set headers."""
TRANSCRIPTION = ("intent", "transcription")
"""Name and value of the query parameter with which a client requests transcripts only."""


class RefusalReason(StrEnum):
    """The reasons for refusing a request, as logs and metrics name them."""

    def __new__(cls, name: str, status: int, hint: str) -> Self:
        """Add the `status` code of the HTTP response, and a `hint` for the client, in one line that
        repeats nothing of the request."""
        made = str.__new__(cls, name)
        made._value_, made.status, made.hint = name, status, hint
        return made

    status: int
    hint: str

    DUPLICATE_HEADER = "duplicate_header", 400, "send Host, Origin and Authorization once each"
    HOST = "host", 421, "this server does not answer to that name; --allow-host adds one"
    PROXY = (
        *("undeclared_proxy", 403),
        "this request was forwarded; start the server with --behind-proxy",
    )
    PEER = (
        *("peer", 403),
        "this server has no API key, so only its own machine may connect; --api-key-file adds keys",
    )
    KEY_IN_URL = (
        *("key_in_url", 400),
        "a key in a URL ends up in logs: replace it, and send Authorization: Bearer KEY",
    )
    QUERY = "query", 400, "the only parameters are ?model= and ?intent=transcription"
    ORIGIN = "origin", 403, "pages of that origin may not connect; --allow-origin adds one"
    SUBPROTOCOL = "subprotocol", 400, f"offer the subprotocol {PROTOCOL}, or none at all"
    TWO_KEYS = "two_keys", 400, "send one key, in one place"
    NO_KEY = (
        *("no_key", 401),
        f"send Authorization: Bearer KEY, or the subprotocol {KEY_PROTOCOL}KEY",
    )
    WRONG_KEY = "wrong_key", 401, "this is not a key of this server"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The verdict that a client may connect."""

    key: str | None
    """Id of the key that the client showed; None if the server has no keys."""
    transcribes: bool = False
    """Whether the client wants transcripts only."""


class Access:
    """The access rules of one server."""

    def __init__(
        self,
        binding: Binding,
        keys: Keyring | None = None,
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
    ) -> None:
        """Add `hosts` to the names of the server, and `origins` to the pages that may use it.

        A host is a name or an address, and may have a port. A host without a port is accepted with
        the server's own port and, behind a proxy, also with the usual port of HTTPS. Origins are
        written as browsers write them, e.g. `https://voice.example.com`; their hosts are accepted
        too. Raises ConfigError for a malformed host or origin, and for a binding that
        `check_binding` refuses.
        """
        hosts, origins = list(hosts), list(origins)
        check_binding(binding, keys=keys is not None, names=bool(hosts or origins))
        self._keys = keys
        self._behind_proxy = binding.behind_proxy
        self._scheme = "https" if binding.tls else "http"
        self.origins: set[str] = set()
        """All values of the Origin header that are accepted."""
        self.hosts: set[str] = set()
        """All values of the Host header that are accepted, as `_normal` writes them."""
        own = [*_HERE]
        if not binding.everywhere:
            own.append(f"[{binding.host}]" if ":" in binding.host else binding.host)
        for text in [*own, *hosts]:
            host, port = _host(text)
            self._add(self._scheme, host, port or binding.port)
            if binding.behind_proxy and text in hosts:
                self._add("https", host, port or 443)
        for text in origins:
            self._add(*_origin(text))

    def host(self, headers: HeaderList, peer: str) -> str | RefusalReason:
        """Return the name by which a request calls the server, as `_normal` writes it, or a
        refusal.

        `peer` is the address that the connection comes from, empty if it is unknown. It is unknown
        for a Unix socket. A server without keys refuses that too, because what connects there is as
        a rule a proxy, which need not say for whom it asks.
        """
        names = [name.lower() for name, _ in headers]
        if any(names.count(name) > 1 for name in ("host", "origin", "authorization")):
            return RefusalReason.DUPLICATE_HEADER
        called = _normal(_value(headers, "host") or "")
        if called not in self.hosts:
            return RefusalReason.HOST
        if self._keys is None and any(map(_FORWARDED.fullmatch, names)):
            return RefusalReason.PROXY
        if self._keys is None and not is_loopback(peer):
            return RefusalReason.PEER
        return called

    def judge(self, target: str, headers: HeaderList, peer: str) -> Allowed | RefusalReason:
        """Decide whether a client at the address `peer` may connect to `target`, a path with its
        query.

        A missing Origin is allowed, because programs send none. Browsers leave it out of requests
        for images, scripts and links, and then `Sec-Fetch-Site` says whether another page asks.
        """
        called = self.host(headers, peer)
        if isinstance(called, RefusalReason):
            return called
        query = target.partition("?")[2]
        if reason := self._query(query):
            return reason
        origin = _value(headers, "origin")
        site = _value(headers, "sec-fetch-site")
        if site in _OTHER_PAGES if origin is None else origin not in self.origins:
            return RefusalReason.ORIGIN
        offered = list(_tokens(headers))
        if offered and (PROTOCOL not in offered or not all(map(_TOKEN.fullmatch, offered))):
            return RefusalReason.SUBPROTOCOL
        key = self._key(headers, offered)
        if isinstance(key, RefusalReason):
            return key
        return Allowed(key, TRANSCRIPTION in parse_qsl(query))

    def beside(self, headers: HeaderList, peer: str) -> bool:
        """Return whether a request comes from the server's own page, opened on this machine.

        `peer` is the address that the connection comes from. A forwarded request does not count,
        since it may come from elsewhere. The page's origin must be this server, under one of the
        names in `_HERE`.
        """
        called = self.host(headers, peer)
        if isinstance(called, RefusalReason) or self._behind_proxy:
            return False
        if any(_FORWARDED.fullmatch(name) for name, _ in headers):
            return False
        host = _parsed(called)
        own_origin = f"{self._scheme}://{called}"
        return (
            is_loopback(peer)
            and host is not None
            and host[0] in _HERE
            and _value(headers, "origin") == own_origin
        )

    def _add(self, scheme: str, host: str, port: int | None) -> None:
        """Accept the origin with this scheme, host and port. If the scheme is http or https, accept
        the host too. None as `port` means the usual port of the scheme."""
        usual = {"http": 80, "https": 443}.get(scheme)
        port = port or usual
        shown = host if port in (usual, None) else f"{host}:{port}"
        self.origins.add(f"{scheme}://{shown}")
        if usual:
            self.hosts |= {shown, f"{host}:{port}"}

    def _query(self, query: str) -> RefusalReason | None:
        """Return why the query of a URL is refused; None if it is accepted."""
        for name, value in parse_qsl(query, keep_blank_values=True):
            if _SECRET.search(name) or (self._keys and self._keys.match(value)):
                return RefusalReason.KEY_IN_URL
            if name != "model" and (name, value) != TRANSCRIPTION:
                return RefusalReason.QUERY
        return None

    def _key(self, headers: HeaderList, offered: Sequence[str]) -> str | RefusalReason | None:
        """Return the id of the key that was shown, or why the client is refused. Return None if the
        server has no keys."""
        if self._keys is None:
            return None
        shown = [
            token.removeprefix(KEY_PROTOCOL) for token in offered if token.startswith(KEY_PROTOCOL)
        ]
        bearer = _BEARER.fullmatch(_value(headers, "authorization") or "")
        if bearer:
            shown.append(bearer[1])
        if len(shown) != 1:
            return RefusalReason.TWO_KEYS if shown else RefusalReason.NO_KEY
        return self._keys.match(shown[0]) or RefusalReason.WRONG_KEY


_HERE = ("localhost", "127.0.0.1", "[::1]")
"""Names by which programs on this machine reach the server."""
_OTHER_PAGES = ("cross-site", "same-site")
"""Values of `Sec-Fetch-Site` for requests by pages of other origins."""
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([!-~]+)")
_SECRET = re.compile(r"key|token|secret|auth|bearer|pass", re.IGNORECASE)
_FORWARDED = re.compile(
    r"via|cdn-loop|x[-_](real|client)[-_]ip|x[-_]original[-_](host|for)|tailscale-.*"
    r"|.*(forwarded|client[-_]?ip|connecting[-_]ip|external-address).*",
    re.IGNORECASE,
)
"""A pattern of names of headers that proxies, tunnels and networks for content add."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]+)/?")


def _value(headers: HeaderList, wanted: str) -> str | None:
    return next((value for name, value in headers if name.lower() == wanted), None)


def _tokens(headers: HeaderList) -> Iterator[str]:
    """Yield the subprotocols that a client offers."""
    for name, value in headers:
        if name.lower() == "sec-websocket-protocol":
            yield from (token.strip(" \t") for token in value.split(","))


def _parsed(text: str) -> tuple[str, int | None] | None:
    """Return the host in lower case, without a trailing dot, and the port; None if malformed."""
    found = _HOST.fullmatch(text)
    if not found:
        return None
    host, port = found[1].lower().removesuffix("."), found[2] and int(found[2])
    if not host or port == 0 or (port or 0) > 65535:
        return None
    if host.startswith("["):
        try:
            host = f"[{ipaddress.IPv6Address(host[1:-1])}]"
        except ValueError:
            return None
    return host, port or None


def _normal(text: str) -> str | None:
    """Return a host, with its port if it has one, in the form in which hosts are compared: lower
    case, no trailing dot, short IPv6 addresses. Return None if `text` is malformed."""
    parsed = _parsed(text)
    if parsed is None:
        return None
    host, port = parsed
    return host if port is None else f"{host}:{port}"


def _host(text: str) -> tuple[str, int | None]:
    parsed = _parsed(text)
    if parsed is None:
        raise ConfigError(
            f"{text!r} is not the name of a host",
            "write voice.example.com, 192.0.2.7 or [2001:db8::7], and a port after a colon",
        )
    return parsed


def _origin(text: str) -> tuple[str, str, int | None]:
    found = _ORIGIN.fullmatch(text)
    parsed = _parsed(found[2]) if found else None
    if not found or not parsed:
        raise ConfigError(
            f"{text!r} is not an origin", "write https://voice.example.com, without a path"
        )
    return found[1].lower(), *parsed
