"""`voiceloop serve --phone`: what it makes and keeps, what it shows, and who gets in by that."""

from __future__ import annotations

import re
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from os import environ
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import pytest
import zxingcpp
from cryptography import x509

from tests.server.serving import BY_ITSELF, PATIENCE_S, Client, free_port
from tests.terminals import Terminal
from voiceloop.errors import ConfigError
from voiceloop.server.phone import (
    ISSUER,
    LASTS,
    LEFT,
    Invitation,
    code,
    kept_certificate,
    kept_key,
    own_address,
)
from voiceloop.server.port import tls_context

pytestmark = pytest.mark.real

ADDRESS = "127.0.0.2"
"""Stands in for the address of this machine in its network: here it is neither of the usual two."""
NAMES = (ADDRESS, "localhost", "127.0.0.1")
NOW = datetime.now(UTC)
HALVES = {" ": (1, 1), "▀": (0, 1), "▄": (1, 0), "█": (0, 0)}
"""Whether the upper and the lower square of a character are dark."""


def read(shown: str) -> str:
    """The text of the QR code in what a terminal shows."""
    rows = [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in shown.splitlines()]
    drawn = [[HALVES[char] for char in row] for row in rows if row and set(row) <= set(HALVES)]
    dark = np.array(drawn).transpose(0, 2, 1).reshape(2 * len(drawn), -1)
    image = np.kron(np.where(dark, 0, 255), np.ones((4, 4))).astype(np.uint8)
    (found,) = zxingcpp.read_barcodes(image)
    return found.text


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


# --- what is made and kept ----------------------------------------------------------------------


@pytest.mark.parametrize("length", [16, 32, 64, 256])
def test_a_camera_reads_from_the_code_what_is_in_it(length: int) -> None:
    link = Invitation("https://192.168.1.23:8765", "k" * length, None).link
    assert read(code(link)) == link == f"https://192.168.1.23:8765/#key={'k' * length}"


def test_the_key_is_made_once_and_only_the_user_can_read_it(tmp_path: Path) -> None:
    file = kept_key(tmp_path / "phone")
    key = file.read_text()
    assert len(key.strip()) == 32 and mode(file) == 0o600 and mode(file.parent) == 0o700
    assert kept_key(tmp_path / "phone").read_text() == key
    assert kept_key(tmp_path / "other").read_text() != key


def test_the_certificate_is_kept_while_it_serves(tmp_path: Path) -> None:
    file = kept_certificate(tmp_path, NAMES, NOW)
    made = file.read_bytes()
    assert mode(file) == 0o600
    for names, now in ((NAMES, NOW + LASTS - LEFT - timedelta(days=2)), (NAMES[1:], NOW)):
        assert kept_certificate(tmp_path, names, now).read_bytes() == made


@pytest.mark.parametrize("why", ["another address", "out of date", "damaged", "no issuer", "empty"])
def test_the_certificate_is_made_anew_where_it_does_not(tmp_path: Path, why: str) -> None:
    file = kept_certificate(tmp_path, NAMES, NOW)
    made, names, now = file.read_bytes(), NAMES, NOW
    match why:
        case "another address":
            names = ("192.168.1.24", *NAMES[1:])
        case "out of date":
            now = NOW + LASTS - LEFT
        case "damaged":
            file.write_bytes(made[:200])
        case "no issuer":
            (tmp_path / ISSUER).unlink()
        case _:
            file.write_bytes(b"")
    assert kept_certificate(tmp_path, names, now).read_bytes() not in (made, made[:200], b"")
    found = x509.load_pem_x509_certificate(file.read_bytes())
    assert found.not_valid_after_utc > now + LEFT and mode(file) == 0o600


@pytest.mark.parametrize("name", [*NAMES, "laptop.example.net", "[2001:db8::7]", "192.168.1.23"])
def test_who_trusts_the_issuer_trusts_the_server_by_its_names_alone(
    tmp_path: Path, name: str
) -> None:
    file = kept_certificate(tmp_path, (name, *NAMES), NOW)
    client = ssl.create_default_context(cafile=str(tmp_path / ISSUER))
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # as newer versions of Python do
    server = tls_context(file, file)
    greet(client, server, name.strip("[]"))
    for other in ("example.org", "192.168.1.24"):
        with pytest.raises(ssl.SSLCertVerificationError):
            greet(client, server, other)
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(ssl.create_default_context(), server, name.strip("[]"))
    assert b"PRIVATE" not in (tmp_path / ISSUER).read_bytes()
    assert file.read_bytes().count(b"BEGIN PRIVATE") == 1, "the issuer's key is kept nowhere"


def greet(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(up, down, server_hostname=name)
    far = server.wrap_bio(down, up, server_side=True)
    for end in (near, far, near):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue


def test_the_address_is_one_of_this_machine() -> None:
    try:
        address = own_address()
    except ConfigError as error:
        assert "--host" in error.hint, "there is no network here"
    else:
        with socket.socket() as probe:
            probe.bind((address, 0))


# --- the server ---------------------------------------------------------------------------------


def options(port: int, *more: str) -> list[str]:
    own = ("--phone", "--host", ADDRESS, "--port", str(port))
    return [sys.executable, "-m", "voiceloop", "serve", *own, *BY_ITSELF, *more]


def variables(folder: Path) -> dict[str, str]:
    found = {name: value for name, value in environ.items() if name != "VOICELOOP_API_KEY"}
    return found | {"XDG_DATA_HOME": str(folder)}


@contextmanager
def phoned(folder: Path, port: int, *more: str) -> Iterator[Terminal]:
    """The server at a terminal, once it listens."""
    with Terminal(options(port, *more), environment=variables(folder), columns=100) as terminal:
        terminal.wait_for("Ctrl-C ends", PATIENCE_S)
        terminal.wait_for("can talk here", PATIENCE_S)
        yield terminal


def test_whoever_has_the_code_talks_and_nobody_else(tmp_path: Path) -> None:
    port, kept = free_port(), tmp_path / "voiceloop" / "phone"
    page = f"https://{ADDRESS}:{port}"
    with phoned(tmp_path, port) as terminal:
        terminal.wait_for(f"{page}/{ISSUER} first", PATIENCE_S)
        link = read(terminal.shown)
        opened, _, key = link.partition("/#key=")
        assert opened == page and key == (kept / "key").read_text().strip()
        assert f"listening on {page}: open it" in terminal.shown
        assert "warns once" in terminal.shown
        trusted = ssl.create_default_context(cafile=str(kept / ISSUER))
        with urlopen(f"{page}/", context=trusted) as answer:
            assert b"<!doctype html>" in answer.read()
        with urlopen(f"{page}/{ISSUER}", context=trusted) as answer:
            assert answer.headers["Content-Type"] == "application/x-x509-ca-cert"
            assert answer.read() == (kept / ISSUER).read_bytes()
        url = f"wss://{ADDRESS}:{port}/v1/realtime"
        protocols = ["realtime", f"openai-insecure-api-key.{key}"]
        with Client(url, ssl=trusted, origin=page, subprotocols=protocols) as client:
            client.update(output_modalities=["text"])
            assert "Paris" in str(client.write("What is the capital of France?")["output"])
        for headers, status in (
            ({}, 401),
            ({"Authorization": f"Bearer {key}", "Origin": "https://example.org"}, 403),
            ({"Authorization": f"Bearer {key}", "Host": f"example.org:{port}"}, 421),
        ):
            with pytest.raises(HTTPError) as refused:
                urlopen(Request(f"{page}/v1/realtime", headers=headers), context=trusted)
            assert refused.value.code == status
            refused.value.close()
        with pytest.raises((URLError, OSError)):  # nothing goes without encryption
            urlopen(f"http://{ADDRESS}:{port}/")
    made = {file.name: file.read_bytes() for file in kept.iterdir()}
    with phoned(tmp_path, port) as terminal:
        assert read(terminal.shown) == link
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == made


def test_where_there_is_no_terminal_no_key_is_shown(tmp_path: Path) -> None:
    with subprocess.Popen(
        options(free_port()),
        env=variables(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not any(ISSUER in line for line in lines):
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        process.kill()
    key = (tmp_path / "voiceloop" / "phone" / "key").read_text().strip()
    assert key not in "".join(lines) and "at a terminal only" in "".join(lines)
