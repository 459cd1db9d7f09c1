"""Adds up the memory that is needed on one device."""

from __future__ import annotations

from dataclasses import dataclass

from voiceloop.catalog.cards import size

MARGIN = 0.1
"""Share of the needed memory by which its estimate may be too high. A plan is refused only if it
does not fit even after this share is subtracted."""


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Something that takes memory, such as a model."""

    name: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.name} {size(self.bytes)}"


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
        return sum(part.bytes for part in self.parts)

    @property
    def fits(self) -> bool:
        """Return whether the parts may fit, within the margin; True if `free` is unknown."""
        return self.free is None or (self.needed - self.taken) * (1 - MARGIN) <= self.free

    def __str__(self) -> str:
        free = "" if self.free is None else f", {size(self.free)} free"
        parts = ", ".join(str(part) for part in self.parts if part.bytes)
        return f"needs about {size(self.needed)} on {self.device}{free}: {parts}"
