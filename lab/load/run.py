"""Measures the server with many clients at once: they speak, send silence, or send nothing.

    python -m lab.load.run
    python -m lab.load.run --speaking 2 --quiet 0 --idle 0
    python -m lab.load.run --speaking 2 --leavers 100

With `--leavers` two other kinds of clients follow. The first kind interrupts answers: how soon do
these end? The second kind vanishes in the middle of a turn: what does the server still hold
afterwards?
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import anyio
from msgspec.structs import replace

from lab.command import carry_out
from lab.load.measure import Load, LoadMeasurement, memory_mb
from lab.load.plan import CallResults
from voiceloop.bench.command import Found
from voiceloop.bench.record import BenchRecord, Progress, spread
from voiceloop.errors import ConfigError
from voiceloop.server.service import Service
from voiceloop.session import Session

INTERRUPTERS = "lab.load.interrupters"
RESUME_S = 2.0
"""Seconds for which the server keeps the sessions of clients that have vanished."""
SETTLED_S = 3.0
"""Seconds from the end of the last session until the count of what the server still holds."""
WARM_LEAVERS = 50
"""Clients that vanish before the first count, so that it includes what the server always keeps."""


@dataclass(frozen=True, slots=True)
class Left:
    """What the server holds while no client is connected."""

    sessions: int
    conversations: int
    tasks: int
    threads: int
    memory_mb: float | None


class Floor(logging.Handler):
    """A log handler that records when the server paused and interrupted answers."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.moments: dict[tuple[str, str], float] = {}
        """The time of each change, by the change and the answer's item id."""

    def emit(self, record: logging.LogRecord) -> None:
        """Record the time of a change of an answer."""
        fields = vars(record)
        if "change" in fields and fields["item"] is not None:
            self.moments[fields["change"], fields["item"]] = record.created


class LongLoad(LoadMeasurement):
    """One measurement of the server, with clients that interrupt or vanish after the load."""

    def __init__(self, plan: Load, progress: Progress) -> None:
        super().__init__(plan, progress)
        self._leavers = plan.leavers
        self._floor = Floor()
        places = self.settings.server.max_sessions + plan.leavers + WARM_LEAVERS
        limits = ("max_sessions", "max_sessions_per_key", "max_parked_per_key")
        server = replace(self.settings.server, resume_s=RESUME_S, **dict.fromkeys(limits, places))
        self.settings = replace(self.settings, server=server)

    def run(self) -> BenchRecord:
        """Load the models, serve and measure, and read the server's log meanwhile."""
        logger = logging.getLogger("voiceloop.server")
        level, logger.propagate = logger.level, False
        logger.setLevel(logging.INFO)
        logger.addHandler(self._floor)
        try:
            return super().run()
        finally:
            logger.removeHandler(self._floor)
            logger.setLevel(level)
            logger.propagate = True

    async def loaded(self, service: Service, alone: CallResults) -> dict[str, Any]:
        """Return the figures of all clients at once, and of those that interrupt or vanish."""
        found, names = await super().loaded(service, alone), tuple(self.said)
        self.progress("interruptions")
        calls = self.calls(speaking=(names,) * self.plan.speaking)
        talk = await self.exchange(INTERRUPTERS, {"calls": calls, "interruption": names[0]})
        await self._vanish(min(WARM_LEAVERS, self._leavers))
        earlier = await self._left(service)
        self.progress(f"{self._leavers} clients that vanish")
        gone = await self._vanish(self._leavers)
        return found | {
            "interruptions": interruptions(talk["turns"], talk["last_audio"], self._floor.moments),
            "vanished": gone,
            "left_before": asdict(earlier),
            "left_after": asdict(await self._left(service)),
        }

    async def _vanish(self, count: int) -> int:
        plan = {"calls": self.calls(), "leavers": count}
        return (await self.exchange(INTERRUPTERS, plan))["left"]

    async def _left(self, service: Service) -> Left:
        """Wait until all sessions are over. Return what the server still holds."""
        with anyio.move_on_after(RESUME_S + 10 * SETTLED_S):
            while service.sessions:  # noqa: ASYNC110 - it is the server's own time that is measured
                await anyio.sleep(0.1)
        await anyio.sleep(SETTLED_S)
        gc.collect()
        return Left(
            service.sessions,
            sum(type(thing) is Session for thing in gc.get_objects()),
            len(anyio.get_running_tasks()),
            threading.active_count(),
            memory_mb(),
        )


def interruptions(
    turns: Sequence[Mapping[str, Any]],
    last_audio: Mapping[str, float],
    moments: Mapping[tuple[str, str], float],
) -> dict[str, Any]:
    """Return how long audio of an answer still arrived after the server had paused or ended it.

    `moments` has the times of these changes, by the change and the answer's item id. A negative
    figure means that the last audio had arrived before the change.
    """
    ended = [turn["item_id"] for turn in turns if ("interrupted", turn["item_id"]) in moments]
    stale = {
        change: partial(spread, points=(50, 95, 99))(
            (last_audio[item] - moments[change, item]) * 1000
            for item in ended
            if (change, item) in moments
        )
        for change in ("paused", "interrupted")
    }
    return {
        "turns": len(turns),
        "interrupted": len(ended),
        "pause_to_last_audio_ms": stale["paused"],
        "decision_to_last_audio_ms": stale["interrupted"],
    }


def run(command: Load, progress: Progress) -> Found:
    """Load the models, serve and measure.

    Raises ConfigError for an impossible number of clients or turns, and what loading raises.
    """
    silent = (command.quiet, command.idle, command.leavers)
    if command.speaking < 1 or command.turns < 1 or min(silent) < 0:
        raise ConfigError(
            "a load needs somebody who speaks, and no negative numbers",
            "give at least --speaking 1 --turns 1",
        )
    progress("preparing what is said")
    kind = LongLoad if command.leavers else LoadMeasurement
    return kind(command, progress).run(), {}


if __name__ == "__main__":
    sys.exit(carry_out(Load, run, sys.argv[1:]))
