"""The event loop under the server and under those who measure it."""

from __future__ import annotations

import sys
from typing import Any

LOOP: dict[str, Any] = {"use_uvloop": sys.platform != "win32"}
"""Options of `anyio.run`: of the same work with sockets uvloop makes a good deal less, and clients
that measure are to leave the server as much of the machine as they can."""
