"""What `voiceloop serve --phone` makes, so that phones in the same network can talk: an API key, a
certificate, and a QR code with the server's address and the key.

No company vouches for the certificate, so browsers warn of it, and those of iPhones open no
websocket until it is trusted. Its issuer is made for it alone, and the issuer's private key is kept
nowhere. So a phone that trusts the issuer trusts this one certificate, and nobody can make another.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import segno
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from voiceloop.errors import ConfigError
from voiceloop.outputs import part_beside

ISSUER = "voiceloop.crt"
"""Name of the file with the issuer's certificate. The page's server serves it under this name."""
LASTS, LEFT = timedelta(days=730), timedelta(days=30)
"""How long a certificate is valid (Apple's systems take no more than 825 days), and the least that
is left of it when it is used again."""
EARLIER = timedelta(days=1)
"""How long before it is made a certificate becomes valid, since clocks of phones may be wrong."""
_LIGHT_ON_DARK = "\x1b[97;40m{}\x1b[0m"
"""A line of a QR code for terminals with any colours: the light squares are drawn."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a phone needs to open the page."""

    page: str
    """The page's address, such as `https://192.168.1.23:8765`."""
    key: str
    issuer: Path | None
    """The file `ISSUER`; None for a certificate that the user has brought."""

    @property
    def link(self) -> str:
        """The address that opens the page with the key. Browsers send nothing behind a # to the
        server, so the key gets into no log."""
        return f"{self.page}/#key={self.key}"

    def told(self, *, secret: bool) -> Iterator[str]:
        """Yield the lines for the user. With `secret`, they show the code and the key."""
        if secret:
            yield "scan this with a phone in the same network:"
            yield code(self.link)
            yield f"or open {self.link}"
            yield "whoever sees the code can talk here"
        else:
            yield "the QR code is shown at a terminal only, because it holds the key"
        if self.issuer:
            yield (
                "the browser warns once, because this machine made the certificate itself and "
                'nobody vouches for it: choose "Advanced" and go on; what is sent is encrypted'
            )
            yield f"an iPhone has to trust {self.page}/{self.issuer.name} first: docs/server.md"


def own_address() -> str:
    """Return the IPv4 address by which this machine takes part in its network. Raises ConfigError
    without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect(("192.0.2.1", 9))  # sends nothing; the address is for documents (RFC 5737)
        except OSError as error:
            raise ConfigError(
                f"this machine finds no network that a phone could be in: {error.strerror}",
                "connect it, or name its address: --host 192.168.1.23",
            ) from error
        return str(way.getsockname()[0])


def kept_key(folder: Path) -> Path:
    """Return the file in `folder` with the API key for phones. Make it if there is none."""
    file = folder / "key"
    if not file.exists():
        _write(file, f"{secrets.token_urlsafe(24)}\n".encode())
    return file


def kept_certificate(folder: Path, names: Sequence[str], now: datetime) -> Path:
    """Return the PEM file in `folder` with a certificate for `names`, names of hosts and addresses,
    and its private key. Make both, and the file `ISSUER`, if they are missing or the certificate is
    for other names or will soon be out of date."""
    file = folder / "certificate.pem"
    if not (folder / ISSUER).exists() or not _serves(file, names, now):
        issuer, own = _issued(names, now)
        _write(folder / ISSUER, issuer)
        _write(file, own + issuer)
    return file


def code(text: str) -> str:
    """Return a QR code of `text` for a terminal, in lines of half blocks."""
    drawn = StringIO()
    segno.make(text, error="l", micro=False).terminal(drawn, border=2, compact=True)
    return "\n".join(map(_LIGHT_ON_DARK.format, drawn.getvalue().splitlines()))


def _serves(file: Path, names: Sequence[str], now: datetime) -> bool:
    """Return whether the first certificate in `file` is for all `names` and will be valid for a
    while."""
    if not file.exists():
        return False
    try:
        known = x509.load_pem_x509_certificate(file.read_bytes())
        found = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):  # it is damaged
        return False
    return {*map(_named, names)} <= {*found} and known.not_valid_after_utc - now > LEFT


def _issued(names: Sequence[str], now: datetime) -> tuple[bytes, bytes]:
    """Return the certificate of a new issuer, and a certificate for `names` with its private key,
    both in PEM."""
    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _subject(f"voiceloop on {socket.gethostname()}")
    issuer_id = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    signs = {**dict.fromkeys(_USES, False), "key_cert_sign": True}
    begun = (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .not_valid_before(now - EARLIER)
        .not_valid_after(now - EARLIER + LASTS)
    )
    above = (
        begun.subject_name(issuer)
        .public_key(authority.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**signs), critical=True)
        .add_extension(issuer_id, critical=False)
        .sign(authority, SHA256())
    )
    below = (
        begun.subject_name(_subject(names[0]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(map(_named, names)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id),
            critical=False,
        )
        .sign(authority, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return above.public_bytes(Encoding.PEM), below.public_bytes(Encoding.PEM) + secret


_USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])  # RFC 5280: at most 64


def _named(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return x509.DNSName(name)


def _write(file: Path, content: bytes) -> None:
    """Write a file that only the user can read, whole or not at all. Raises ConfigError."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with part_beside(file, mode=0o600) as part:  # no other user can read it at any time
            part.write(content)
        Path(part.name).replace(file)
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written: {error.strerror}", "check its permissions"
        ) from error
