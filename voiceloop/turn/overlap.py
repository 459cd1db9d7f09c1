"""Says which work a session does at the same time and ahead of time. `OVERLAPS` names the possible
choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Overlap:
    """A choice of the work that is done at the same time and ahead of time. Each part can be left
    out, to measure how much faster it makes replies."""

    stages: bool = True
    """Recognition, thinking, synthesis and playback run at the same time. Otherwise each runs after
    the one before it, and all other parts are left out too."""
    prefill: bool = True
    """The language model reads the user's words while they speak."""
    early_reply: bool = True
    """The reply begins in the first silence; otherwise at the endpoint."""
    carry_over: bool = True
    """A reply that began too early becomes the draft of the next reply; otherwise the next reply
    has no such draft."""
    held_audio: bool = True
    """The first clause of an early reply is synthesised before the endpoint."""


EVERYTHING = Overlap()
SEQUENTIAL = Overlap(False, False, False, False, False)
"""Each stage runs after the one before it. This is the reference for all measurements."""
STREAMING = Overlap(True, False, False, False, False)
"""Stages overlap, but nothing is guessed except draft tokens."""
OVERLAPS: Mapping[str, Overlap] = {
    "sequential": SEQUENTIAL,
    "streaming": STREAMING,
    "speculative": EVERYTHING,
} | {
    f"no-{part.name.replace('_', '-')}": replace(EVERYTHING, **{part.name: False})
    for part in fields(Overlap)
    if part.name != "stages"
}
"""Overlaps by name. A name is a mode, or `no-` and the part that is left out: `no-prefill`."""
