"""Whether the server can have its port: told before the models are loaded, which takes seconds."""

from __future__ import annotations

import errno
import socket

from voiceloop.errors import DeviceError
from voiceloop.server.access import Binding


def check_port(binding: Binding) -> None:
    """DeviceError where the port is taken: for whoever has much to do before it runs an `App`."""
    try:
        found = socket.getaddrinfo(
            binding.host or None, binding.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                try:
                    probe.bind(address)
                except OSError as error:
                    # A name may have addresses of a kind that this machine does not speak.
                    if error.errno != errno.EADDRNOTAVAIL or len(found) == 1:
                        raise
    except OSError as error:
        raise no_port(binding, error) from error


def no_port(binding: Binding, error: OSError) -> DeviceError:
    """What is told of a port that cannot be had."""
    return DeviceError(
        f"nothing can listen at port {binding.port} of {binding.host}: {error.strerror}",
        "stop what listens there, or choose another with --port",
    )
