"""Whether the recogniser keeps up with the speaker, from the record of its decodes.

What a partial transcript tells ends where its audio ends, so it is behind the speaker by the time
since that was recorded: least when it arrives, most just before the next one does. Knows neither
engines nor clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from voiceloop.bench.record import spread
from voiceloop.bench.takes import Take
from voiceloop.trace.record import Lane


@dataclass(frozen=True, slots=True)
class Behind:
    """How far a partial transcript is behind the speaker, in milliseconds."""

    begun: float
    """When its decode begins; more than a window of the voice detector is a backlog of audio."""
    arrived: float
    """When it is there."""
    replaced: float | None
    """When the next transcript is there; None where the turn's last one is this."""


def behind(take: Take) -> list[Behind]:
    """Of each partial transcript of a take."""
    found: list[Behind] = []
    for trace in take.traces:
        decodes = [span for span in trace.spans if span.lane == Lane.ASR]
        decodes.sort(key=lambda span: span.end)
        for span, following in zip_longest(decodes, decodes[1:]):
            if span.name == "partial":
                recorded = take.began + float(span.args["until_s"])
                found.append(
                    Behind(
                        1000 * (span.start - recorded),
                        1000 * (span.end - recorded),
                        1000 * (following.end - recorded) if following else None,
                    )
                )
    return found


def partial_figures(found: Sequence[Behind]) -> dict[str, Any]:
    """Counts and spreads; a figure without values is None."""
    return {
        "partials": len(found),
        "backlog_ms": spread(one.begun for one in found),
        "behind_ms": spread(one.arrived for one in found),
        "before_the_next_ms": spread(one.replaced for one in found),
    }
