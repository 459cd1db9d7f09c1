"""The event loop under the server and under those who measure it."""

from __future__ import annotations

import sys
import time
from typing import Any

LOOP: dict[str, Any] = {}
"""Options of `anyio.run`: of the same work with sockets uvloop makes a good deal less, and clients
that measure are to leave the server as much of the machine as they can. It is not for Windows."""

if sys.platform != "win32":
    import uvloop

    class _Loop(uvloop.Loop):
        def time(self) -> float:
            """Seconds; uvloop's own are cut to whole milliseconds, and traces are made of them."""
            return time.monotonic()  # noqa: TID251 - this is the clock that anyio asks

    LOOP["loop_factory"] = _Loop
