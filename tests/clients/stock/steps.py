"""What the clients for Python share: the script, a microphone, and how a step is told.

A client runs in an environment that has no voiceloop; so this module needs the standard library.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path

RATE = 24_000
FRAME_S = 0.02
FRAME = 2 * round(FRAME_S * RATE)
PATIENCE_S = 20.0

URL = sys.argv[1]
FOLDER = Path(sys.argv[2])
SCRIPT = json.loads((FOLDER / "script.json").read_text())


def told(step: str, **came: object) -> None:
    """Say what came back in a step; whoever runs the client judges it."""
    print(json.dumps({"step": step, **came}), flush=True)


class Microphone:
    """It gives silence, and what is said into it, at the pace of the sound."""

    def __init__(self) -> None:
        self._said = bytearray()
        self._next = time.monotonic()

    def say(self, name: str) -> None:
        """Begin to say what lies in a file."""
        self._said += (FOLDER / name).read_bytes()

    async def frame(self) -> bytes:
        """The next 20 ms."""
        self._next += FRAME_S
        await asyncio.sleep(max(0.0, self._next - time.monotonic()))
        frame = bytes(self._said[:FRAME])
        del self._said[:FRAME]
        return frame.ljust(FRAME, b"\0")


def run(conversation: Coroutine[None, None, None]) -> None:
    """Have a conversation; where it fails the client ends at once, whatever still runs in it."""

    async def guarded() -> None:
        try:
            await conversation
        except Exception:
            traceback.print_exc()
            os._exit(1)

    asyncio.run(guarded())


async def until(found: Callable[[], object]) -> None:
    """Wait until something is so."""
    for _ in range(round(PATIENCE_S / FRAME_S)):
        if found():
            return
        await asyncio.sleep(FRAME_S)
    raise TimeoutError
