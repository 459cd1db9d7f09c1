"""The certificate and key of the server, and what may be wrong with them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from voiceloop.errors import ConfigError
from voiceloop.server.keys import read_private


def context(certificate: Path, key: Path, now: datetime) -> ssl.SSLContext:
    """What the server speaks TLS by: its certificate with those above it, and its private key.

    Both are PEM files, and the key is not encrypted. ConfigError where one of them cannot be read
    or is damaged, where they do not belong together, where others may read the key, and where the
    certificate is not valid at `now`.
    """
    try:
        begins, ends = validity(_der(certificate))
    except (ValueError, IndexError, StopIteration):
        raise ConfigError(
            f"{certificate} holds no certificate, or a damaged one",
            "name the PEM file of the certificate",
        ) from None
    if now < begins:
        raise ConfigError(
            f"the certificate {certificate} is valid from {begins:%Y-%m-%d %H:%M} UTC only",
            "is the clock of this machine right?",
        )
    if now >= ends:
        raise ConfigError(
            f"the certificate {certificate} expired on {ends:%Y-%m-%d %H:%M} UTC", "renew it"
        )
    if b"PRIVATE KEY-----" not in read_private(key, "private key"):
        raise ConfigError(f"{key} holds no private key", "name the PEM file of the key")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    try:
        # Without a password of its own OpenSSL would stop and ask at the terminal.
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
    return made


def validity(der: bytes) -> tuple[datetime, datetime]:
    """From when until when a certificate is valid (RFC 5280, 4.1).

    ssl tells that of a peer's certificate, but not of one's own. ValueError, IndexError or
    StopIteration where `der` is not a certificate.
    """
    signed = next(_elements(next(_elements(der))[1]))[1]
    # Before it stand serial number, algorithm and issuer, and mostly a version, whose tag is 0xA0.
    _, _, _, period, *_ = (content for tag, content in _elements(signed) if tag != 0xA0)
    begins, ends = (_moment(tag, content) for tag, content in _elements(period))
    return begins, ends


_MISMATCH = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
_UTC_TIME = 0x17


class _EncryptedError(Exception):
    pass


def _no_password() -> str:
    raise _EncryptedError


def _der(certificate: Path) -> bytes:
    """The first certificate in the file, which is the server's own; ValueError where none is."""
    try:
        text = certificate.read_text(encoding="latin-1")
    except OSError as error:
        raise ConfigError(
            f"cannot read the certificate {certificate}: {error.strerror}",
            "check its name and permissions",
        ) from error
    start, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    body = text[text.index(start) : text.index(end)]
    return ssl.PEM_cert_to_DER_cert(f"{body}{end}")


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element in `data` (DER)."""
    while data:
        length, start = data[1], 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(data[2:start])
        yield data[0], data[start : start + length]
        data = data[start + length :]


def _moment(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == _UTC_TIME:  # two digits for years from 1950 to 2049
        text = ("20" if text < "50" else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
