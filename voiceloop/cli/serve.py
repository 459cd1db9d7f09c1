"""The command `voiceloop serve`: at a port of its own, or as a replica on a Ray cluster."""

from __future__ import annotations

import os
import sys

from voiceloop.errors import ConfigError
from voiceloop.server.command import Serve

HARD_STOP_MARGIN_S = 100.0
"""Seconds that Ray's old proxy may run on after `server.session_s`, until it is ended by force."""


def serve(command: Serve) -> int:
    """Run `voiceloop serve`, on a Ray cluster if an option says so."""
    if not command.cluster:
        from voiceloop.server.app import serve_at_port  # slow

        return serve_at_port(command)
    limits = command.settings.server
    # Ray reads these variables when it is imported and started.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_SERVE_ENABLE_HA_PROXY", "1")
    hard_stop_s = round(limits.session_s + HARD_STOP_MARGIN_S)
    os.environ.setdefault("RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S", str(hard_stop_s))
    try:
        from voiceloop.cluster import run
    except ModuleNotFoundError as error:
        hint = "pip install 'voiceloop[scale,redis]'"
        raise ConfigError("--cluster needs Ray Serve", hint) from error
    # The replicas get the words of this command: they read the same files and settings.
    words = sys.argv[sys.argv.index("serve") + 1 :]
    run([word for word in words if word != "--cluster"], command.host, command.port)
    return 0
