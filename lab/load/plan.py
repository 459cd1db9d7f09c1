"""The instructions for the clients of the load, and the clients' results. Both are sent between
processes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RATE = 24_000
"""Sample rate of audio in messages, in hertz."""
FRAME_MS = 20
"""Length of the audio in one message, in ms."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Clients that connect at the same time, and stay until the speaking ones have said
    everything."""

    url: str
    speaking: tuple[tuple[str, ...], ...] = ()
    """For each speaking client, the names of the sounds that it says. After each sound it waits for
    an answer."""
    quiet: int = 0
    """Number of clients that send silence."""
    idle: int = 0
    """Number of clients that send nothing."""
    sounds: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sounds by name, as PCM16 in base64."""
    ends: Mapping[str, int] = field(default_factory=dict[str, int])
    """The end of speech in each sound: the index of the sample after the last audible one, at
    `RATE`."""


@dataclass(frozen=True, slots=True)
class CallerTurn:
    """One turn of a client, with its results as the client saw them.

    Its fields are the keys of a turn in the record.
    """

    client: int
    said: str
    item_id: str = ""
    """Id of the answer's item."""
    outcome: str = "lost"
    """Outcome in the trace; `lost` if no trace came in time."""
    transcript: str = ""
    samples: int = 0
    """Number of samples of the answer that arrived."""
    voice_to_voice_ms: float | None = None
    """Milliseconds from the last audible sample of the client's speech to the first audible sample
    of the answer, if the client plays audio as soon as it arrives."""
    found_late_ms: float = 0.0
    """Milliseconds from the true end of speech to the end that the server found. The server's own
    figures count from the end that it found."""
    parts_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    """The parts of `served_voice_to_voice_ms`."""
    served_voice_to_voice_ms: float | None = None
    """Milliseconds from voice to voice in the server's trace, without the transport from and to the
    client."""
    served_endpoint_to_sound_ms: float | None = None
    """Milliseconds from the endpoint to the first audible sample, in the server's trace."""
    underruns: int = 0
    """Times that the audio ran out within the answer, if the client plays audio as soon as it
    arrives."""

    @property
    def added_ms(self) -> float | None:
        """Milliseconds that the transport to and from the server adds to the voice-to-voice time of
        the server's trace. None if a time is missing."""
        if self.voice_to_voice_ms is None or self.served_voice_to_voice_ms is None:
            return None
        return self.voice_to_voice_ms - self.found_late_ms - self.served_voice_to_voice_ms

    @property
    def endpoint_to_sound_ms(self) -> float | None:
        """Milliseconds from the endpoint to the first audible sample, with the transport."""
        if self.added_ms is None or self.served_endpoint_to_sound_ms is None:
            return None
        return self.served_endpoint_to_sound_ms + self.added_ms


@dataclass(frozen=True, slots=True)
class CallResults:
    """The results of all clients of a `Calls`."""

    turns: tuple[CallerTurn, ...]
    dropped: tuple[str, ...]
    """The reason of each connection that ended before its client closed it."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> CallResults:
        """Read the results that the clients' process has printed."""
        turns = tuple(CallerTurn(**turn) for turn in found["turns"])
        return cls(turns, tuple(found["dropped"]))
