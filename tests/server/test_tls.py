"""TLS: a sound certificate is taken, and each kind of damage has a line of its own."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.errors import ConfigError
from voiceloop.server.tls import context, validity

pytestmark = pytest.mark.pure

DAY = timedelta(days=1)


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
        """Valid from now, for a day: what a test takes for now is measured from there."""
        extension = f"basicConstraints=critical,CA:{'FALSE' if leaf else 'TRUE'}"
        self.run(
            *("req", "-x509", "-key", key, "-subj", "/CN=localhost", "-days", 1),
            *("-addext", extension, "-out", name),
        )
        return self._folder / name


@pytest.fixture
def authority(require_program: Callable[[str], Path], tmp_path: Path) -> Authority:
    return Authority(require_program("openssl"), tmp_path)


def middle(certificate: Path) -> datetime:
    begins, ends = validity(ssl.PEM_cert_to_DER_cert(certificate.read_text()))
    return begins + (ends - begins) / 2


def complaint(certificate: Path, key: Path, now: datetime) -> str:
    with pytest.raises(ConfigError) as caught:
        context(certificate, key, now)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("kind", ["EC", "RSA"])
@pytest.mark.parametrize("leaf", [True, False])
def test_a_sound_certificate_is_taken(authority: Authority, kind: str, leaf: bool) -> None:
    key = authority.key("key.pem", kind)
    certificate = authority.certificate("cert.pem", key, leaf=leaf)
    made = context(certificate, key, middle(certificate))
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
    assert context(chain, key, middle(own))
    chain.write_text(above.read_text() + own.read_text())
    assert "does not belong to" in complaint(chain, key, middle(own))


def test_a_certificate_is_valid_for_its_time_only(authority: Authority) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    begins, ends = validity(ssl.PEM_cert_to_DER_cert(certificate.read_text()))
    assert ends - begins == DAY
    second = timedelta(seconds=1)
    for now in (begins, ends - second):
        assert context(certificate, key, now)
    assert "is valid from" in complaint(certificate, key, begins - second)
    said = complaint(certificate, key, ends)
    assert said == f"the certificate {certificate} expired on {ends:%Y-%m-%d %H:%M} UTC"


@pytest.mark.parametrize("kind", ["EC", "RSA"])
def test_a_key_of_another_certificate_is_refused(authority: Authority, kind: str) -> None:
    certificate = authority.certificate("cert.pem", authority.key("key.pem"))
    other = authority.key("other.pem", kind)
    assert complaint(certificate, other, middle(certificate)) == (
        f"the private key {other} does not belong to the certificate {certificate}"
    )


def test_an_encrypted_key_is_refused_without_asking_for_its_password(authority: Authority) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    locked = key.with_name("locked.pem")
    authority.run("pkey", "-in", key, "-aes128", "-passout", "pass:x", "-out", locked)
    said = complaint(certificate, locked, middle(certificate))
    assert said == f"the private key {locked} is encrypted"


def test_others_may_not_read_the_key(authority: Authority) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    key.chmod(0o644)
    said = complaint(certificate, key, middle(certificate))
    assert said == f"private key {key} is open to every user of this machine"


def test_what_is_absent_is_named(authority: Authority, tmp_path: Path) -> None:
    key, absent = authority.key("key.pem"), tmp_path / "absent"
    certificate = authority.certificate("cert.pem", key)
    now = middle(certificate)
    assert complaint(absent, key, now) == (
        f"cannot read the certificate {absent}: No such file or directory"
    )
    assert complaint(certificate, absent, now) == (
        f"cannot read private key {absent}: No such file or directory"
    )


@pytest.mark.parametrize(
    "content", ["", "\0\xff", "-----BEGIN CERTIFICATE-----\n", "-----END CERT"]
)
def test_a_file_that_is_something_else_is_told_apart(authority: Authority, content: str) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    other = key.with_name("other.pem")
    other.write_text(content, encoding="latin-1")
    other.chmod(0o600)
    now = middle(certificate)
    assert complaint(other, key, now) == f"{other} holds no certificate, or a damaged one"
    assert complaint(certificate, other, now) == f"{other} holds no private key"
    assert complaint(key, certificate, now) == f"{key} holds no certificate, or a damaged one"
    certificate.chmod(0o600)
    assert complaint(certificate, certificate, now) == f"{certificate} holds no private key"


def test_a_damaged_file_is_refused_wherever_the_damage_is(authority: Authority) -> None:
    key = authority.key("key.pem")
    certificate = authority.certificate("cert.pem", key)
    now = middle(certificate)
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
            said = complaint(certificate, key, now)
            assert str(path) in said
        path.write_text(whole)
    assert context(certificate, key, now)


@given(st.binary())
def test_no_bytes_are_too_strange_to_be_looked_at(der: bytes) -> None:
    with pytest.raises((ValueError, IndexError, StopIteration)):
        validity(der)


@given(st.datetimes(datetime(1950, 1, 1), datetime(2199, 12, 31)))
def test_times_are_read_in_both_of_their_forms(moment: datetime) -> None:
    """RFC 5280, 4.1.2.5: two digits for the year until 2049, four from then on."""
    moment = moment.replace(microsecond=0)
    short = moment.year < 2050
    text = f"{moment:%Y%m%d%H%M%SZ}"
    time = element(0x17 if short else 0x18, (text[2:] if short else text).encode())
    name = element(0x30, b"x" * 300)
    for version in (b"", element(0xA0, b"\2\1\2")):
        signed = version + element(2, b"\1") + name + name + element(0x30, time + time) + name
        der = element(0x30, element(0x30, signed) + name)
        assert validity(der) == (moment.replace(tzinfo=UTC),) * 2


def element(tag: int, content: bytes) -> bytes:
    length = len(content)
    size = (length.bit_length() + 7) // 8
    return (
        bytes([tag, length] if length < 128 else [tag, 0x80 | size, *length.to_bytes(size)])
        + content
    )
