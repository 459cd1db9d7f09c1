"""The lease of a conversation: only one process writes it at a time.

A holder is identified by its *place*, its process id and the time at which the process began. A
place is one run of a machine, from boot to shutdown, and one namespace of process ids. A process in
the same place can see whether the holder is alive. For all other processes, the holder counts as
alive for `FRESH_S` after its last sign of life.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

FRESH_S = 20.0
"""Seconds for which a holder counts as alive after a sign of life, if the process itself cannot be
seen."""
BEAT_S = 5.0
"""Seconds between two signs of life of a holder that writes nothing."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has a lease."""

    token: str
    """A random string that identifies this lease."""
    place: str
    """The boot id of the machine and the namespace of process ids. Empty if the system does not
    show them, so that processes cannot be seen."""
    pid: int
    started: str
    """The time at which the process began, in clock ticks since the boot; empty if it is not
    known."""

    def alive(self, seen: float, now: float) -> bool:
        """Return whether the holder still has its lease. `seen` is the time of its last sign of
        life, and `now` the present time; both are Unix times in seconds."""
        if self.place and self.place == _place():
            return bool(self.started) and _started(self.pid) == self.started
        return now - seen < FRESH_S


def this_process() -> Holder:
    """Return a new holder for this process."""
    return Holder(token_hex(8), _place(), os.getpid(), _started(os.getpid()))


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux, or no /proc
        return ""


def _started(pid: int) -> str:
    """Return when the process `pid` began, in clock ticks since the boot. Return an empty string if
    there is no such process, or if it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
