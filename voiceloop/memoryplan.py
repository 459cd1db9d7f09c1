"""Adds up the memory that is needed on one device, and finds a smaller choice that fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from voiceloop.catalog.cards import size

MARGIN = 0.1
"""Share of the needed memory by which its estimate may be too high. A plan is refused only if it
does not fit even after this share is subtracted."""


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Something that takes memory, such as a model, once or several times."""

    name: str
    bytes: int
    """Bytes that it takes once."""
    count: int = 1

    @property
    def total(self) -> int:
        """Return the bytes of all of them."""
        return self.bytes * self.count

    def __str__(self) -> str:
        times = f"{self.count} x " if self.count > 1 else ""
        return f"{self.name} {times}{size(self.bytes)}"


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A hint to change settings, and the parts that would be needed after that change."""

    hint: str
    parts: tuple[MemoryPart, ...]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of one device, and everything that will be loaded there."""

    device: str
    free: int | None
    """Free bytes of the device; None if unknown."""
    parts: tuple[MemoryPart, ...]
    taken: int = 0
    """Bytes of `parts` that this process has taken already. They need not be free."""

    @property
    def needed(self) -> int:
        """Return the estimated bytes of all parts."""
        return total(self.parts)

    @property
    def fits(self) -> bool:
        """Return whether the parts may fit, within the margin; True if `free` is unknown."""
        return self.free is None or (self.needed - self.taken) * (1 - MARGIN) <= self.free

    def __str__(self) -> str:
        free = "" if self.free is None else f", {size(self.free)} free"
        parts = ", ".join(str(part) for part in self.parts if part.total)
        return f"needs about {size(self.needed)} on {self.device}{free}: {parts}"

    def instead(self, changes: Iterable[PlanChange]) -> str:
        """Return the hint of the first change whose parts fit, without subtracting the margin.

        Returns an empty text if none fits, and the first hint if `free` is unknown.
        """
        for change in changes:
            if self.free is None or total(change.parts) - self.taken <= self.free:
                return change.hint
        return ""


def total(parts: Iterable[MemoryPart]) -> int:
    """Return the bytes of all parts."""
    return sum(part.total for part in parts)
