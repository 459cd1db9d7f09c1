"""What a session does at once and ahead of time, and names for leaving some of it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Overlap:
    """What is done at once and ahead of time. Each can be left out, to measure what it is worth."""

    stages: bool = True
    """Recognition, thinking, synthesis and playback at once; otherwise each after the last, and
    none of the following."""
    prefill: bool = True
    """The language model reads the user's words while they speak."""
    early_reply: bool = True
    """The reply is begun in the first silence; otherwise the endpoint begins it."""
    carry_over: bool = True
    """A reply that was begun too early is the draft of the next; otherwise that starts afresh."""
    held_audio: bool = True
    """The first clause of an early reply is synthesised before the endpoint."""


EVERYTHING = Overlap()
SEQUENTIAL = Overlap(False, False, False, False, False)
"""Each stage after the last: the reference that everything is measured against."""
STREAMING = Overlap(True, False, False, False, False)
"""Stages overlap, and nothing is guessed but tokens."""
OVERLAPS: Mapping[str, Overlap] = {
    "sequential": SEQUENTIAL,
    "streaming": STREAMING,
    "speculative": EVERYTHING,
} | {
    f"no-{part.name.replace('_', '-')}": replace(EVERYTHING, **{part.name: False})
    for part in fields(Overlap)
    if part.name != "stages"
}
"""By the name of the mode, or of what it leaves out."""
