"""Says what the clients of the load are to do, and what they saw; both cross to another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RATE = 24_000
"""Hertz of audio in messages."""
FRAME_MS = 20
"""Audio in one message."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Clients that come at once, and stay until the speaking ones have said everything."""

    url: str
    speaking: tuple[tuple[str, ...], ...] = ()
    """Names of what each client says, one after the other's answer."""
    quiet: int = 0
    """Clients that send silence."""
    idle: int = 0
    """Clients that send nothing."""
    sounds: Mapping[str, str] = field(default_factory=dict[str, str])
    """PCM16 in base64, by name."""
    ends: Mapping[str, int] = field(default_factory=dict[str, int])
    """The sample after the last audible one of each sound, at `RATE`."""


@dataclass(frozen=True, slots=True)
class CallerTurn:
    """One thing said, as its client saw what came of it. Moments are of the machine's clock.

    Its fields are the columns of the report.
    """

    client: int
    said: str
    item_id: str = ""
    """The answer."""
    outcome: str = "lost"
    """The trace's; `lost` where none came in time."""
    transcript: str = ""
    samples: int = 0
    """Audio of the answer that arrived."""
    voice_to_voice_ms: float | None = None
    """From the true last of the client's voice, as its microphone had it, to the arrival of the
    first audible sample."""
    found_late_ms: float = 0.0
    """How much later than that the server took the voice to end; its own figures begin there."""
    parts_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of the server's voice to voice."""
    served_voice_to_voice_ms: float | None = None
    """The same as the server's trace has it, without the way there and back."""
    served_endpoint_to_sound_ms: float | None = None
    """The part of that which is behind the server's decision that the turn is over."""
    underruns: int = 0
    """Times that a client that plays at once had nothing to play in mid-answer."""

    @property
    def added_ms(self) -> float | None:
        """Milliseconds that the way to the server and back adds to what the session takes."""
        if self.voice_to_voice_ms is None or self.served_voice_to_voice_ms is None:
            return None
        return self.voice_to_voice_ms - self.found_late_ms - self.served_voice_to_voice_ms

    @property
    def endpoint_to_sound_ms(self) -> float | None:
        """From the decision that the turn is over to the first sound, with that way."""
        if self.added_ms is None or self.served_endpoint_to_sound_ms is None:
            return None
        return self.served_endpoint_to_sound_ms + self.added_ms


@dataclass(frozen=True, slots=True)
class CallResults:
    """What all clients of a `Calls` saw."""

    turns: tuple[CallerTurn, ...]
    dropped: tuple[str, ...]
    """Connections that ended before their clients wanted, with the reason."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> CallResults:
        """Read what came from the clients' process."""
        turns = tuple(CallerTurn(**turn) for turn in found["turns"])
        return cls(turns, tuple(found["dropped"]))
