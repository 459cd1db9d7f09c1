"""The lease of a conversation: only one process writes it at a time.

A holder is known by its process id and the moment at which that process began, within its *place*:
one run of a machine and one namespace of process ids. In the same place it can be seen whether the
holder is alive. From another place its last sign of life decides.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

FRESH_S = 20.0
"""Seconds for which a sign of life counts, if the process itself cannot be seen."""
BEAT_S = 5.0
"""Seconds after which the holder gives a sign of life."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has a lease."""

    token: str
    """A random name of this lease."""
    place: str
    """Empty if processes cannot be seen here."""
    pid: int
    started: str
    """The time at which the process began, as the system counts it."""

    def alive(self, seen: float, now: float) -> bool:
        """Return whether the holder, seen last at the unix time `seen`, still has its lease."""
        if self.place and self.place == _place():
            return bool(self.started) and _started(self.pid) == self.started
        return now - seen < FRESH_S


def this_process() -> Holder:
    """Return this process as a new holder."""
    return Holder(token_hex(8), _place(), os.getpid(), _started(os.getpid()))


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux, or no /proc
        return ""


def _started(pid: int) -> str:
    """Return when a process began, in ticks since the boot; empty if there is none, or it is
    dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
