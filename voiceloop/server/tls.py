"""The certificate and private key of the server, and the checks of them."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

from voiceloop.errors import ConfigError
from voiceloop.server.keys import read_private

_MISMATCH = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
_OUT_OF_TIME = (9, 10)
"""OpenSSL's error codes for certificates that are not valid yet, or not any more."""


def context(certificate: Path, key: Path) -> ssl.SSLContext:
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
