"""The command `voiceloop serve`: its options, and their checks before anything is loaded.

Heavy modules are imported only when the command runs.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from voiceloop import startup
from voiceloop.choosing import Choosing, notes, settle
from voiceloop.config import SECTIONS
from voiceloop.errors import ConfigError
from voiceloop.flags import written
from voiceloop.status import engine_names

if TYPE_CHECKING:
    from voiceloop.engines import Engines
    from voiceloop.server.auth import Access
    from voiceloop.server.conversations import OfferedConversations
    from voiceloop.server.http import Site
    from voiceloop.server.port import Binding
    from voiceloop.server.service import Service
    from voiceloop.server.telemetry import Telemetry

logger = logging.getLogger(__name__)


class Serve(Choosing, frozen=True, kw_only=True):
    """Serve a web page to talk to, and the OpenAI Realtime protocol.

    It has many attributes: each is an option of the command.
    """

    uses = tuple(section for section in SECTIONS if section != "wake")  # that is for talk
    examples = ("voiceloop serve --preset laptop",)
    docs = "docs/server.md"

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
    """Export traces and metrics by OpenTelemetry; the variables OTEL_* say where to."""
    record: Annotated[Path | None, written("DIR")] = None
    """Record each session in a new folder in DIR; docs/replay.md says what is in it."""
    cluster: bool = False
    """Run as a replica on a Ray cluster; docs/deploy.md has more."""


def serve_at_port(command: Serve) -> int:
    """Run `voiceloop serve` at its own port. Return its exit status."""
    import anyio

    from voiceloop.server import tls
    from voiceloop.server.port import LOOP, check_port

    # Mistakes in the options are found before the models are loaded, which takes long.
    secure = None
    if command.cert and command.key:
        secure = tls.context(command.cert, command.key)
    elif command.cert or command.key:
        raise ConfigError("TLS takes a certificate and its key", "give both --cert and --key")
    binding, access, site = guarded(command)
    _prepare(command)
    check_port(binding)
    command, notice = settle(command, looks=True)
    _start_log(command)
    startup.configure(command.settings.threads)
    logger.info("loading", extra={"models": engine_names(command.settings)})
    from voiceloop.server.app import App

    service = _service(command, access, site, alone=True)
    app = App(service, command.settings.server, binding, secure)
    where = f"{'https' if secure else 'http'}://{command.host}:{command.port}"

    def ready() -> None:
        print(f"listening on {where}: open it in a browser, Ctrl-C ends", flush=True)
        for note in (*notice.all(), *notes(command.settings)):
            print(note, flush=True)
        if command.record is not None:
            print(f"recording what is said and decided in {command.record}", flush=True)

    anyio.run(app.run, ready, backend_options=LOOP)
    if app.interrupted:
        raise KeyboardInterrupt
    return 0


def service_of(command: Serve, *, alone: bool = False) -> Service:
    """Return the service that `command` describes, for a program that has its own port, such as
    uvicorn.

    `alone` says that the process runs nothing else. Then the loaded models are excluded from
    garbage collection. Raises ConfigError for wrong options, and ModelNotFound for models that are
    not on this machine.
    """
    if command.cert or command.key:
        raise ConfigError("TLS is up to the server that runs the application", "leave --cert out")
    _, access, site = guarded(command)
    _prepare(command)
    command, _ = settle(command, looks=False, ask=None)
    return _service(command, access, site, alone=alone)


def service_beside(command: Serve, engines: Engines) -> Service:
    """Return the service that `command` describes. It shares the loaded models `engines` with its
    caller.

    Raises ConfigError for wrong options.
    """
    from voiceloop.server.resume.opening import open_store
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
    from voiceloop.server.auth import Access
    from voiceloop.server.http import load
    from voiceloop.server.keys import read_keys
    from voiceloop.server.port import Binding

    if command.conversations and command.behind_proxy:
        raise ConfigError(
            "behind a proxy it cannot be seen who is on this machine and may keep conversations",
            "leave out --conversations or --behind-proxy",
        )
    binding = Binding(command.host, command.port, bool(command.cert), command.behind_proxy)
    keys = read_keys(os.environ, command.api_key_file)
    access = Access(binding, keys, hosts=command.allow_host, origins=command.allow_origin)
    return binding, access, load(bundled("web"))


def _service(command: Serve, access: Access, site: Site, *, alone: bool) -> Service:
    from voiceloop.catalog.names import prepare
    from voiceloop.loading import open_engines
    from voiceloop.server.offers import Offers
    from voiceloop.server.resume.opening import open_store
    from voiceloop.server.service import Service
    from voiceloop.tools.results import room
    from voiceloop.tools.servers import configured
    from voiceloop.tools.toolbox import Toolbox

    servers = configured(command.settings.mcp, only=command.settings.mcp.serve)
    telemetry = _telemetry(command)
    store = open_store(command.settings.server.store)
    prepare(command.settings)  # here, since Ctrl-C ends a download only in the main thread
    models = open_engines(command.settings)
    opened = startup.settled(models) if alone else models
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
    from voiceloop.server.conversations import OfferedConversations

    return OfferedConversations(location()) if command.conversations else None


def _prepare(command: Serve) -> None:
    """Make the folder for recordings, if there are to be any."""
    from voiceloop.recording.folder import prepare

    if command.record is not None:
        prepare(command.record)


def _telemetry(command: Serve) -> Telemetry | None:
    """Return the telemetry that `command` asks for. Raises ConfigError if that is not possible."""
    if not command.telemetry:
        return None
    try:
        from voiceloop.server.telemetry import Telemetry
    except ModuleNotFoundError as error:
        raise ConfigError(
            "--telemetry needs OpenTelemetry's SDK", "pip install 'voiceloop[otel]'"
        ) from error
    return Telemetry(words=command.log_transcripts)


def _start_log(command: Serve) -> None:
    """Log to stderr: in plain words on a terminal, else as JSON for programs."""
    from voiceloop.server import logs
    from voiceloop.server.plainlog import PlainFormatter, worth_telling

    plain = sys.stderr.isatty()
    formatter = PlainFormatter if plain else logs.Formatter
    handler = logs.start(sys.stderr, formatter(transcripts=command.log_transcripts))
    if plain:
        handler.addFilter(worth_telling)
