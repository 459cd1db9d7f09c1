"""TLS: a sound certificate is taken, and each kind of damage has a line of its own."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from voiceloop.errors import ConfigError
from voiceloop.server.port import tls_context

pytestmark = pytest.mark.pure

DAY = timedelta(days=1)
REGISTER = """
[ca]
default_ca = own
[own]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
[any]
commonName = supplied
"""
"""What `openssl ca` wants to know; it is what can make certificates of any time."""


class Authority:
    """Makes certificates in a folder, with openssl."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder

    def run(self, *arguments: object) -> None:
        subprocess.run(
            [self._program, *map(str, arguments)], cwd=self._folder, check=True, capture_output=True
        )

    def key(self, name: str, kind: str = "EC") -> Path:
        how = {"EC": "ec_paramgen_curve:P-256", "RSA": "rsa_keygen_bits:2048"}[kind]
        self.run("genpkey", "-algorithm", kind, "-pkeyopt", how, "-out", name)
        path = self._folder / name
        path.chmod(0o600)
        return path

    def certificate(self, name: str, key: Path, *, leaf: bool = True) -> Path:
        """Valid from now, for a day."""
        extension = f"basicConstraints=critical,CA:{'FALSE' if leaf else 'TRUE'}"
        self.run(
            *("req", "-x509", "-key", key, "-subj", "/CN=localhost", "-days", 1),
            *("-addext", extension, "-out", name),
        )
        return self._folder / name

    def certificate_of(self, begins: datetime, ends: datetime, key: Path) -> Path:
        """Valid from when it begins until it ends, to the second."""
        (self._folder / "index.txt").write_text("")
        (self._folder / "serial").write_text("01")
        (self._folder / "ca.conf").write_text(REGISTER)
        self.run("req", "-new", "-key", key, "-subj", "/CN=localhost", "-out", "request.pem")
        self.run(
            *("ca", "-batch", "-notext", "-selfsign", "-config", "ca.conf", "-in", "request.pem"),
            *("-keyfile", key, "-startdate", f"{begins:%Y%m%d%H%M%SZ}"),
            *("-enddate", f"{ends:%Y%m%d%H%M%SZ}", "-out", "timed.pem"),
        )
        return self._folder / "timed.pem"


@pytest.fixture
def authority(require_program: Callable[[str], Path], tmp_path: Path) -> Authority:
    return Authority(require_program("openssl"), tmp_path)


def complaint(certificate: Path, key: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        tls_context(certificate, key)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("kind", ["EC", "RSA"])
@pytest.mark.parametrize("leaf", [True, False])
def test_a_sound_certificate_is_taken(authority: Authority, kind: str, leaf: bool) -> None:
    key = authority.key("key.pem", kind)
    certificate = authority.certificate("cert.pem", key, leaf=leaf)
    made = tls_context(certificate, key)
    assert made.minimum_version is ssl.TLSVersion.TLSv1_2
    assert made.verify_mode is ssl.CERT_NONE
    assert greeted(made, certificate) == ("TLSv1.3", "http/1.1")


def greeted(server: ssl.SSLContext, trusted: Path) -> tuple[str | None, str | None]:
    """Version and protocol on which a client that trusts the certificate agrees with the server."""
    client = ssl.create_default_context(cafile=str(trusted))
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.check_hostname = False
    client.set_alpn_protocols(["h2", "http/1.1"])
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(down, up)
    far = server.wrap_bio(up, down, server_side=True)
    waiting = [near, far, near, far]
    for end in waiting:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return near.version(), near.selected_alpn_protocol()


def test_a_chain_is_taken_by_its_first_certificate(authority: Authority) -> None:
    key = authority.key("key.pem")
    own = authority.certificate("own.pem", key)
    above = authority.certificate("above.pem", authority.key("above.key"))
    chain = own.with_name("chain.pem")
    chain.write_text(f"issued by somebody\n{own.read_text()}{above.read_text()}")
    assert tls_context(chain, key)
    chain.write_text(above.read_text() + own.read_text())
    assert "not that of the certificate" in complaint(chain, key)


def test_a_certificate_is_valid_for_its_time_only(authority: Authority) -> None:
    key, now = authority.key("key.pem"), datetime.now(UTC)

    def said_of(begins: timedelta, ends: timedelta) -> str:
        certificate = authority.certificate_of(now + begins, now + ends, key)
        try:
            assert tls_context(certificate, key)
        except ConfigError as error:
            return error.message
        return ""

    assert said_of(-DAY, DAY) == ""
    assert "timed.pem is not valid today" in said_of(-2 * DAY, -DAY)
    assert "timed.pem is not valid today" in said_of(DAY, 2 * DAY)


@pytest.mark.parametrize("kind", ["EC", "RSA"])
def test_a_key_of_another_certificate_is_refused(authority: Authority, kind: str) -> None:
    certificate = authority.certificate("cert.pem", authority.key("key.pem"))
    other = authority.key("other.pem", kind)
    assert complaint(certificate, other) == (
        f"the private key {other} is damaged, or not that of the certificate {certificate}"
    )


def test_an_encrypted_key_is_refused_without_asking_for_its_password(authority: Authority) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    locked = key.with_name("locked.pem")
    authority.run("pkey", "-in", key, "-aes128", "-passout", "pass:x", "-out", locked)
    said = complaint(certificate, locked)
    assert said == f"the private key {locked} is encrypted"


def test_others_may_not_read_the_key(authority: Authority) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    key.chmod(0o644)
    said = complaint(certificate, key)
    assert said == f"private key {key} is open to every user of this machine"


@pytest.mark.parametrize(
    "content", ["", "\0\xff", "-----BEGIN CERTIFICATE-----\n", "-----END CERT"]
)
def test_a_file_that_is_something_else_is_told_apart(authority: Authority, content: str) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    other = key.with_name("other.pem")
    other.write_text(content, encoding="latin-1")
    other.chmod(0o600)
    assert complaint(other, key) == f"{other} holds no certificate, or a damaged one"
    assert complaint(certificate, other) == f"{other} holds no private key"
    assert complaint(key, certificate) == f"{key} holds no certificate, or a damaged one"
    certificate.chmod(0o600)
    assert complaint(certificate, certificate) == f"{certificate} holds no private key"


def test_a_damaged_file_is_refused_wherever_the_damage_is(authority: Authority) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    for path in (certificate, key):
        whole = path.read_text()
        lines = whole.splitlines(keepends=True)
        for changed in (
            "".join(lines[:1] + lines[2:]),
            "".join(lines[:1] + lines[-1:]),
            whole.replace(lines[1], "A" * 64 + "\n"),
            whole.replace(lines[1], "!" * 64 + "\n"),
        ):
            path.write_text(changed)
            said = complaint(certificate, key)
            assert str(path) in said
        path.write_text(whole)
    assert tls_context(certificate, key)
