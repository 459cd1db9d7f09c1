"""What will take memory on one device, whether it fits, and what would: arithmetic alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from voiceloop.catalog.cards import size

MARGIN = 0.1
"""Share by which a need may be estimated too high: what is refused would not fit by that much."""


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Something that takes memory, one or several of a kind."""

    name: str
    bytes: int
    """Of each."""
    count: int = 1

    @property
    def total(self) -> int:
        """Bytes of all."""
        return self.bytes * self.count

    def __str__(self) -> str:
        times = f"{self.count} x " if self.count > 1 else ""
        return f"{self.name} {times}{size(self.bytes)}"


@dataclass(frozen=True, slots=True)
class PlanChange:
    """Something to be set otherwise, and what would be needed then."""

    hint: str
    parts: tuple[MemoryPart, ...]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """All that is to be loaded on a device."""

    device: str
    free: int | None
    """Bytes; None where nothing tells."""
    parts: tuple[MemoryPart, ...]
    taken: int = 0
    """Bytes of the parts that this process has already, so they need not be free."""

    @property
    def needed(self) -> int:
        """Bytes, estimated."""
        return total(self.parts)

    @property
    def fits(self) -> bool:
        """Whether it may fit; true where nothing is known."""
        return self.free is None or (self.needed - self.taken) * (1 - MARGIN) <= self.free

    def __str__(self) -> str:
        free = "" if self.free is None else f", {size(self.free)} free"
        parts = ", ".join(str(part) for part in self.parts if part.total)
        return f"needs about {size(self.needed)} on {self.device}{free}: {parts}"

    def instead(self, changes: Iterable[PlanChange]) -> str:
        """The first of `changes` with which it fits, for sure and not by a margin; empty if none
        does."""
        for change in changes:
            if self.free is None or total(change.parts) - self.taken <= self.free:
                return change.hint
        return ""


def total(parts: Iterable[MemoryPart]) -> int:
    """Bytes of all parts."""
    return sum(part.total for part in parts)
