"""What every measurement leaves behind: one record, and the figures that all of them have.

`--json` prints it, and a report keeps it as `bench.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voiceloop.trace.record import percentiles

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """One measurement; all of it is what JSON can hold."""

    bench: str
    """What was measured: `llm`, `drafts`, `latency`, `asr`, `tts` or `load`."""
    machine: Values
    """Where, as `voiceloop.bench.machine` tells it."""
    settings: Values
    """The configuration, as far as it plays a part, and the plan."""
    figures: Values
    """What was found, as far as possible as medians with percentiles."""
    single: Values = field(default_factory=dict[str, Any])
    """What each single run gave, where that is worth keeping; the report leaves it out."""

    def to_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it; the figures stand beside the rest."""
        about = {"bench": self.bench, "machine": self.machine, "settings": self.settings}
        return {**about, **self.figures, **self.single}


def spread(
    values: Iterable[float | None], points: Sequence[int] = (50, 95)
) -> dict[str, float | None]:
    """Return percentiles of the values that are there, to two places; None where there are none."""
    found = percentiles([value for value in values if value is not None], points)
    return {name: None if value is None else round(value, 2) for name, value in found.items()}


def share(part: int, whole: int) -> float | None:
    """Return how much of `whole` is `part`, to four places; None of nothing."""
    return round(part / whole, 4) if whole else None
