"""The command `voiceloop serve`: its options, and their checks before anything is loaded.

Heavy modules are imported only when the command runs.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from msgspec.structs import replace

from voiceloop import process
from voiceloop.assembly.choosing import Choosing, settle
from voiceloop.errors import ConfigError
from voiceloop.settings.config import SECTIONS
from voiceloop.settings.files import data_folder
from voiceloop.settings.flags import written

if TYPE_CHECKING:
    from voiceloop.engines import Engines
    from voiceloop.server.access.auth import Access
    from voiceloop.server.ops.telemetry import Telemetry
    from voiceloop.server.phone import Invitation
    from voiceloop.server.port import Binding
    from voiceloop.server.routes import Site
    from voiceloop.server.service import Service
    from voiceloop.server.session.offers import OfferedConversations


class Serve(Choosing, frozen=True, kw_only=True):
    """Serve a web page to talk to, and the OpenAI Realtime protocol.

    It has many attributes: each is an option of the command.
    """

    uses = tuple(section for section in SECTIONS if section != "wake")  # that is for talk
    examples = ("voiceloop serve --preset laptop",)
    docs = "docs/server.md"

    phone: bool = False
    """Let phones of the same network in by a QR code. It makes an API key and a certificate, if
    none are given, and listens on every address, unless --host names one; docs/server.md has more.
    """
    host: Annotated[str, written("HOST")] = "localhost"
    """Name or address to listen at; if other machines can reach it, a key and TLS are needed."""
    port: Annotated[int, Meta(ge=1, le=65_535), written("N")] = 8765
    """Port of the page and the websocket."""
    cert: Annotated[Path | None, written("CERT.pem")] = None
    """PEM file with the server's certificate; those of its issuers follow."""
    key: Annotated[Path | None, written("KEY.pem")] = None
    """PEM file with the private key of the certificate."""
    behind_proxy: bool = False
    """A reverse proxy speaks TLS for the server."""
    api_key_file: Annotated[Path | None, written("FILE")] = None
    """File with API keys, one per line; environment variable VOICELOOP_API_KEY can hold one."""
    allow_host: Annotated[tuple[str, ...], written("NAME …")] = ()
    """Another name of the server; the option may be repeated."""
    allow_origin: Annotated[tuple[str, ...], written("URL …")] = ()
    """Origin of pages that may connect; the option may be repeated."""
    conversations: bool = False
    """Keep conversations for pages on this machine; docs/conversations.md has more."""
    log_transcripts: bool = False
    """Also log what is said; with --telemetry it is exported too."""
    telemetry: bool = False
    """Export traces by OpenTelemetry; the variables OTEL_* say where to."""
    record: Annotated[Path | None, written("DIR")] = None
    """Record each session in a new folder in DIR; docs/replay.md says what is in it."""
    cluster: bool = False
    """Run as a replica on a Ray cluster; docs/deploy.md has more."""


def service_of(command: Serve, *, alone: bool = False) -> Service:
    """Return the service that `command` describes, for a program that has its own port, such as
    uvicorn.

    `alone` says that the process runs nothing else. Then the loaded models are excluded from
    garbage collection. Raises ConfigError for wrong options, and ModelNotFound for models that are
    not on this machine.
    """
    if command.cert or command.key or command.phone:
        raise ConfigError(
            "TLS is up to the server that runs the application", "leave --cert and --phone out"
        )
    _, access, site = guarded(command)
    prepare_recordings(command)
    command, _ = settle(command, looks=False, ask=None)
    return made_service(command, access, site, alone=alone)


def service_beside(command: Serve, engines: Engines) -> Service:
    """Return the service that `command` describes. It shares the loaded models `engines` with its
    caller.

    Raises ConfigError for wrong options.
    """
    from voiceloop.server.resume.store import open_store
    from voiceloop.server.service import Service

    _, access, site = guarded(command)
    store = open_store(command.settings.server.store)
    models = nullcontext(engines)
    return Service(
        *(models, command.settings, access, site, store),
        calibrates=False,
        conversations=_conversations(command),
    )


def guarded(command: Serve) -> tuple[Binding, Access, Site]:
    """Return the address of the server, its access rules and its page. Raises ConfigError if others
    could connect without a key, and for options that exclude each other."""
    from voiceloop.bundled import bundled
    from voiceloop.server.access.auth import Access
    from voiceloop.server.access.keys import Keyring, read_keys
    from voiceloop.server.port import Binding
    from voiceloop.server.routes import load

    if command.conversations and command.behind_proxy:
        raise ConfigError(
            "behind a proxy it cannot be seen who is on this machine and may keep conversations",
            "leave out --conversations or --behind-proxy",
        )
    binding = Binding(command.host, command.port, bool(command.cert), command.behind_proxy)
    keys = read_keys(os.environ, command.api_key_file)
    ring = Keyring(keys) if keys else None
    access = Access(binding, ring, hosts=command.allow_host, origins=command.allow_origin)
    return binding, access, load(bundled("web"))


def for_phones(command: Serve) -> tuple[Serve, Invitation]:
    """Return `command` with a key, a certificate and a name by which phones can reach the server,
    each made only if `command` names none. Also return the invitation for phones. Raises
    ConfigError."""
    from voiceloop.server import phone
    from voiceloop.server.access.keys import read_keys
    from voiceloop.server.port import Binding

    if command.behind_proxy:
        raise ConfigError(
            "a phone opens the address of the proxy, which this server does not know",
            "leave out --phone or --behind-proxy",
        )
    folder, hosts = data_folder() / "phone", command.allow_host
    host = "0.0.0.0" if command.host == Binding().host else command.host
    if Binding(host).everywhere and not hosts:
        hosts = (phone.own_address(),)
    name = hosts[0] if hosts else f"[{host}]" if ":" in host else host
    keys, file = read_keys(os.environ, command.api_key_file), command.api_key_file
    if not keys:
        file = phone.kept_key(folder)
        keys = read_keys({}, file)
    cert, key, own = command.cert, command.key, not (command.cert or command.key)
    if own:
        names = (name, "localhost", "127.0.0.1")
        cert = key = phone.kept_certificate(folder, names, datetime.now(UTC))
    ready = replace(command, host=host, allow_host=hosts, api_key_file=file, cert=cert, key=key)
    issuer = folder / phone.ISSUER if own else None
    return ready, phone.Invitation(f"https://{name}:{command.port}", keys[0], issuer)


def made_service(command: Serve, access: Access, site: Site, *, alone: bool) -> Service:
    from voiceloop.assembly.loading import open_engines
    from voiceloop.catalog.names import prepare
    from voiceloop.server.resume.store import open_store
    from voiceloop.server.service import Service
    from voiceloop.server.session.offers import Offers
    from voiceloop.tools.results import room
    from voiceloop.tools.servers import configured
    from voiceloop.tools.toolbox import Toolbox

    servers = configured(command.settings.mcp, only=command.settings.mcp.serve)
    telemetry = _telemetry(command)
    store = open_store(command.settings.server.store)
    prepare(command.settings)  # here, since Ctrl-C ends a download only in the main thread
    models = open_engines(command.settings)
    opened = process.settled(models) if alone else models
    return Service(
        *(opened, command.settings, access, site, store, Offers.of(command), telemetry),
        record=command.record,
        toolbox=Toolbox(most_chars=room(command.settings.llm)),
        servers=servers,
        conversations=_conversations(command),
    )


def _conversations(command: Serve) -> OfferedConversations | None:
    """Return the kept conversations, if `command` offers them."""
    from voiceloop.conversations.store import location
    from voiceloop.server.session.offers import OfferedConversations

    return OfferedConversations(location()) if command.conversations else None


def prepare_recordings(command: Serve) -> None:
    """Make the folder for recordings, if there are to be any."""
    from voiceloop.recording.recording import prepare

    if command.record is not None:
        prepare(command.record)


def _telemetry(command: Serve) -> Telemetry | None:
    """Return the telemetry that `command` asks for. Raises ConfigError if that is not possible."""
    if not command.telemetry or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    try:
        from voiceloop.server.ops.telemetry import Telemetry
    except ModuleNotFoundError as error:
        raise ConfigError(
            "--telemetry needs OpenTelemetry's SDK", "pip install 'voiceloop[otel]'"
        ) from error
    return Telemetry(words=command.log_transcripts)
