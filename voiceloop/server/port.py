"""The address at which the server listens, the protection that it needs there, its TLS certificate
and key, and the event loop."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
import sys
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from voiceloop.errors import ConfigError, DeviceError
from voiceloop.server.access.keys import VARIABLE, read_private

PROBE_S, PAGE_BYTES = 1.0, 10_000
"""Seconds and bytes to wait for and to read of what listens at a port."""
LOOP: dict[str, Any] = {}
"""Options of `anyio.run` for the server and for clients that measure it. They choose the event loop
uvloop, which does much less work for sockets. On Windows, where uvloop does not exist, there are no
options."""

if sys.platform != "win32":
    import uvloop

    class _ServerLoop(uvloop.Loop):
        def time(self) -> float:
            """Return the time of the monotonic clock in seconds. The time that uvloop returns is
            cut to whole milliseconds, which is too coarse for traces."""
            return time.monotonic()  # noqa: TID251 - this is the clock that anyio reads

    LOOP["loop_factory"] = _ServerLoop


@dataclass(frozen=True, slots=True)
class Binding:
    """The address at which the server listens, and how it is secured."""

    host: str = "localhost"
    """Name or address. `localhost` means 127.0.0.1 and ::1; `0.0.0.0` means every IPv4 address, and
    an empty text every address."""
    port: int = 8765
    tls: bool = False
    """Whether the server itself speaks TLS."""
    behind_proxy: bool = False
    """Whether requests come through a reverse proxy, which speaks TLS."""

    @property
    def loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return is_loopback(self.host) or self.host.lower() == "localhost"

    @property
    def everywhere(self) -> bool:
        """Whether the host means all addresses of the machine. Clients cannot use such a host."""
        address = _address(self.host)
        return address.is_unspecified if address else not self.host


def is_loopback(host: str) -> bool:
    """Return whether `host` is an address by which a machine reaches only itself."""
    address = _address(host)
    return address is not None and address.is_loopback


def check_binding(binding: Binding, *, keys: bool, names: bool) -> None:
    """Raise ConfigError if others could connect without a key, if keys and speech would be sent
    without encryption, or if the server would not know the name by which clients call it.

    `keys` says whether clients must show a key. `names` says whether names for the server, as hosts
    or origins, were given.
    """
    if binding.loopback and not binding.behind_proxy:
        return
    lacks: dict[str, str] = {}
    if not keys:
        lacks["anybody in reach may talk to the server, as no API key is set"] = (
            f"--api-key-file FILE (or {VARIABLE})"
        )
    if not (binding.tls or binding.behind_proxy):
        lacks["keys and speech would travel in the clear"] = (
            "--cert and --key (or --behind-proxy, where a proxy speaks TLS)"
        )
    if binding.everywhere and not names:
        lacks["the server does not know its own name"] = "--allow-host voice.example.com"
    if lacks:
        where = (
            "behind a proxy" if binding.behind_proxy else f"on {binding.host or 'every address'}"
        )
        makes = "" if binding.behind_proxy else "; at home, --phone alone makes and gives all of it"
        raise ConfigError(
            f"{where}, {', and '.join(lacks)}", f"give {', '.join(lacks.values())}{makes}"
        )


def bound(binding: Binding) -> list[socket.socket]:
    """Return sockets at all addresses of the host, at which nobody listens yet. Raises
    DeviceError."""
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        try:
            found = socket.getaddrinfo(
                binding.host or None, binding.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, kind, protocol, _, address in found:
                own = stack.enter_context(socket.socket(family, kind, protocol))
                if os.name == "posix":  # on Windows it would let two programs have the port
                    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                try:
                    own.bind(address)
                except OSError as error:
                    # A name may have addresses of a family that this machine lacks.
                    if error.errno != errno.EADDRNOTAVAIL or len(found) == 1:
                        raise
                    continue
                sockets.append(own)
        except OSError as error:
            raise no_port(binding, error) from error
        stack.pop_all()
    return sockets


def check_port(binding: Binding) -> None:
    """Raise DeviceError if the port cannot be opened. Call this before the models are loaded, so
    that the user need not wait for the error."""
    for own in bound(binding):
        own.close()


def no_port(binding: Binding, error: OSError) -> DeviceError:
    """Return the error for a port that cannot be opened."""
    hint = "stop what listens there, or choose another with --port"
    if error.errno == errno.EADDRINUSE and _is_voiceloop(binding.port):
        hint = f"voiceloop may already run: open http://localhost:{binding.port}, or {hint}"
    return DeviceError(
        f"nothing can listen at port {binding.port} of {binding.host}: {error.strerror}", hint
    )


def _is_voiceloop(port: int) -> bool:
    """Return whether voiceloop's page is at `port` of this machine, without TLS."""
    try:
        with closing(HTTPConnection("localhost", port, timeout=PROBE_S)) as connection:
            connection.request("GET", "/")
            return b"<title>voiceloop" in connection.getresponse().read(PAGE_BYTES)
    except (OSError, HTTPException):  # another program, or one that hangs
        return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that `host` is; None if it is a name. An IPv4 address that is written as
    an IPv6 address becomes IPv4."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


_MISMATCH = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
_OUT_OF_TIME = (9, 10)
"""OpenSSL's error codes for certificates that are not valid yet, or not any more."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Make the server's TLS context from two PEM files: its certificate, followed by the
    certificates of its issuers, and its private key.

    Raises ConfigError if a file cannot be read or is damaged, if the two do not belong together, if
    every user of this machine can read or change the key, if the key is encrypted, and if the
    certificate is not valid now.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        client.load_verify_locations(certificate)
    except ssl.SSLError:
        raise ConfigError(
            f"{certificate} holds no certificate, or a damaged one",
            "name the PEM file of the certificate",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot read the certificate {certificate}: {error.strerror}",
            "check its name and permissions",
        ) from error
    if b"PRIVATE KEY-----" not in read_private(key, "private key"):
        raise ConfigError(f"{key} holds no private key", "name the PEM file of the key")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    try:
        # Without `_no_password` OpenSSL would ask for a password at the terminal.
        made.load_cert_chain(certificate, key, password=_no_password)
    except _EncryptedError:
        raise ConfigError(
            f"the private key {key} is encrypted", f"openssl pkey -in {key} -out plain.pem"
        ) from None
    except ssl.SSLError as error:
        if error.reason in _MISMATCH:
            raise ConfigError(
                f"the private key {key} does not belong to the certificate {certificate}",
                "give both files of one certificate",
            ) from error
        raise ConfigError(
            f"the certificate {certificate} or its key {key} is damaged", "get them anew"
        ) from error
    try:
        _greet(client, made)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _OUT_OF_TIME:
            raise ConfigError(
                f"the certificate {certificate} cannot be used today: {error.verify_message}",
                f"renew it; `openssl x509 -noout -dates -in {certificate}` says when it is valid",
            ) from error
    return made


def _greet(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Let a client that trusts the certificate check it in a handshake, since `ssl` has no other
    way to check a certificate.

    Raises SSLCertVerificationError if the client finds a fault.
    """
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near, far = client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)
    for end in (near, far, near):
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()


class _EncryptedError(Exception):
    pass


def _no_password() -> str:
    raise _EncryptedError
