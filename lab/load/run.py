"""Measures the server as `voiceloop bench load` does, and what is left after interruptions and
after clients that vanish in the middle of their turns.

    python -m lab.load.run --speaking 2 --leavers 100
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any

import anyio
from msgspec.structs import replace

from lab.command import carry_out
from voiceloop.bench.command import BenchLoad, Found
from voiceloop.bench.load.measure import LoadMeasurement, memory_mb
from voiceloop.bench.load.plan import CallResults
from voiceloop.bench.progress import Progress
from voiceloop.bench.record import BenchRecord, spread
from voiceloop.flags import written
from voiceloop.server.app import App
from voiceloop.session import Session

CALLERS = "lab.load.callers"
RESUME_S = 2.0
"""How long the server keeps the sessions of clients that vanish."""
SETTLED_S = 3.0
"""After that, what is left is left for good."""
WARM_LEAVERS = 50
"""Clients that vanish before anything is counted, so that what is kept for all is there."""


class LabLoad(BenchLoad, frozen=True, kw_only=True):
    """Measure the server with many clients, interruptions, and clients that vanish."""

    leavers: Annotated[int, written("N")] = 100
    """Clients that vanish in the middle of a turn, after which nothing may be left."""


@dataclass(frozen=True, slots=True)
class Left:
    """What there is while no client is connected."""

    sessions: int
    conversations: int
    tasks: int
    threads: int
    memory_mb: float | None


class Floor(logging.Handler):
    """Remembers from the server's log when answers were paused and interrupted."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.moments: dict[tuple[str, str], float] = {}
        """By what happened and the answer it happened to."""

    def emit(self, record: logging.LogRecord) -> None:
        """Note a change of an answer."""
        fields = vars(record)
        if "change" in fields and fields["item"] is not None:
            self.moments[fields["change"], fields["item"]] = record.created


class LongLoad(LoadMeasurement):
    """One measurement, with what comes after the load."""

    def __init__(self, plan: LabLoad, progress: Progress) -> None:
        super().__init__(plan, progress)
        self._leavers = plan.leavers
        self._floor = Floor()
        places = self.settings.server.max_sessions + plan.leavers + WARM_LEAVERS
        limits = ("max_sessions", "max_sessions_per_key", "max_parked_per_key")
        server = replace(self.settings.server, resume_s=RESUME_S, **dict.fromkeys(limits, places))
        self.settings = replace(self.settings, server=server)

    def run(self) -> BenchRecord:
        """Load the models, serve, and measure, with an ear on the server's log."""
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

    async def loaded(self, app: App, alone: CallResults) -> dict[str, Any]:
        """Return the figures of all clients at once, and of what comes after them."""
        found, names = await super().loaded(app, alone), tuple(self.said)
        self.progress("interruptions")
        calls = self.calls(speaking=(names,) * self.plan.speaking)
        talk = await self.exchange(CALLERS, {"calls": calls, "interruption": names[0]})
        await self._vanish(min(WARM_LEAVERS, self._leavers))
        earlier = await self._left(app)
        self.progress(f"{self._leavers} clients that vanish")
        gone = await self._vanish(self._leavers)
        return found | {
            "interruptions": interruptions(talk["turns"], talk["last_audio"], self._floor.moments),
            "vanished": gone,
            "left_before": asdict(earlier),
            "left_after": asdict(await self._left(app)),
        }

    async def _vanish(self, count: int) -> int:
        asked = {"calls": self.calls(), "leavers": count}
        return (await self.exchange(CALLERS, asked))["left"] if count else 0

    async def _left(self, app: App) -> Left:
        """What there is once the sessions of all clients that were here are over."""
        with anyio.move_on_after(RESUME_S + 10 * SETTLED_S):
            while app.sessions:  # noqa: ASYNC110 - it is the server's own time that is measured
                await anyio.sleep(0.1)
        await anyio.sleep(SETTLED_S)
        gc.collect()
        return Left(
            app.sessions,
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
    """Tell how long audio of an answer still arrived after the server had decided to end it.

    `moments` tells when each answer was paused and interrupted, by what happened and its item.
    Less than nothing: the last audio had arrived before that.
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


def run(command: LabLoad, progress: Progress) -> Found:
    """Load the models, serve, and measure; raises what loading raises."""
    return LongLoad(command, progress).run(), {}


if __name__ == "__main__":
    sys.exit(carry_out(LabLoad, run, sys.argv[1:]))
