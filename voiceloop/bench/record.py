"""What every measurement leaves behind: one record, and the figures that all of them have.

`--json` prints it, a report keeps it as `bench.json`, and `voiceloop.bench.report` draws it. Knows
neither engines nor clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voiceloop.trace.record import percentiles

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement; all of it is what JSON can hold."""

    bench: str
    """What was measured: `llm`, `latency`, `asr`, `tts` or `load`."""
    machine: Values
    """Where: see `voiceloop.bench.machine`."""
    settings: Values
    """The configuration, as far as it plays a part, and the plan."""
    figures: Values
    """What was found, as far as possible as medians with percentiles; beside them what each single
    run gave, where that is worth keeping."""

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it; the figures stand beside the rest."""
        about = {"bench": self.bench, "machine": self.machine, "settings": self.settings}
        return {**about, **self.figures}


def spread(
    values: Iterable[float | None], points: Sequence[int] = (50, 95)
) -> dict[str, float | None]:
    """Percentiles, to two places, of the values that are there; None where there are none."""
    found = percentiles([value for value in values if value is not None], points)
    return {name: None if value is None else round(value, 2) for name, value in found.items()}


def share(part: int, whole: int) -> float | None:
    """How much of `whole` is `part`, to four places; None of nothing."""
    return round(part / whole, 4) if whole else None
