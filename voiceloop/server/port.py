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
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from voiceloop.errors import ConfigError, DeviceError
from voiceloop.server.access.keys import VARIABLE, read_private

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
    """Return sockets that listen at all addresses of the host. Raises DeviceError."""
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        try:
            found = socket.getaddrinfo(
                binding.host or None, binding.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, *_, address in found:
                try:
                    own = socket.create_server(address, family=family)
                except OSError as error:
                    # A name may have addresses of a family that this machine lacks.
                    if error.errno != errno.EADDRNOTAVAIL or len(found) == 1:
                        raise
                    continue
                sockets.append(stack.enter_context(own))
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
    if error.errno == errno.EADDRINUSE:
        hint = f"voiceloop may already run: open http://localhost:{binding.port}, or {hint}"
    # Python adds the address to the text of its sockets' errors; names have errors of their own.
    why = error.strerror
    if error.errno is not None and not isinstance(error, socket.gaierror):
        why = os.strerror(error.errno)
    return DeviceError(f"nothing can listen at port {binding.port} of {binding.host}: {why}", hint)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that `host` is; None if it is a name. An IPv4 address that is written as
    an IPv6 address becomes IPv4."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Make the server's TLS context from two PEM files: its certificate, followed by the
    certificates of its issuers, and its private key.

    Raises ConfigError if a file cannot be read or is damaged, if the two do not belong together, if
    every user of this machine can read or change the key, if the key is encrypted, and if the
    certificate is not valid now.
    """
    _check_dates(certificate)
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
        raise ConfigError(
            f"the private key {key} is damaged, or not that of the certificate {certificate}",
            "give both files of one certificate",
        ) from error
    return made


def _check_dates(certificate: Path) -> None:
    """Raise ConfigError if a file does not begin with a certificate that is valid now."""
    from cryptography import x509  # only where there is a certificate: it takes long

    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError:
        raise ConfigError(
            f"{certificate} holds no certificate, or a damaged one",
            "name the PEM file of the certificate",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot read the certificate {certificate}: {error.strerror}",
            "check its name and permissions",
        ) from error
    if not found.not_valid_before_utc <= datetime.now(UTC) <= found.not_valid_after_utc:
        raise ConfigError(
            f"the certificate {certificate} is not valid today, but from "
            f"{found.not_valid_before_utc:%Y-%m-%d} to {found.not_valid_after_utc:%Y-%m-%d}",
            "renew it",
        )


class _EncryptedError(Exception):
    pass


def _no_password() -> str:
    raise _EncryptedError
