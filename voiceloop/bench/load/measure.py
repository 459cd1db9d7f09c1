"""`voiceloop bench load`: what the server does for many clients at once.

The server runs here, as `voiceloop serve` runs it; its clients run in another process and come
through real sockets. First one of them is alone, then all are there, then answers are interrupted,
and in the end clients vanish in the middle of their turns.
"""

from __future__ import annotations

import base64
import gc
import json
import logging
import os
import socket
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec.structs import replace

from voiceloop.audio.frames import SPEECH_RATE, Resampler
from voiceloop.bench.clips import Clip
from voiceloop.bench.latency import SUITES
from voiceloop.bench.load import figures
from voiceloop.bench.load.plan import RATE, Calls, Seen
from voiceloop.bench.machine import engines, surroundings
from voiceloop.bench.progress import Progress
from voiceloop.bench.record import Record
from voiceloop.bench.suites import SuiteName, build
from voiceloop.bundled import bundled
from voiceloop.config import Config, ServerConfig
from voiceloop.engines import Engines
from voiceloop.errors import ConfigError, VoiceloopError
from voiceloop.loading import open_engines
from voiceloop.server.app import App, Place
from voiceloop.server.auth import Access
from voiceloop.server.http import load
from voiceloop.server.port import LOOP, Binding
from voiceloop.session import Session
from voiceloop.startup import settled
from voiceloop.types import Pcm

RESUME_S = 2.0
"""How long the server keeps the sessions of clients that vanish."""
SETTLED_S = 3.0
"""After that, what is left is left for good."""
WARM_LEAVERS = 50
"""Clients that vanish before anything is counted, so that what is kept for all is there."""
MOST_JSON = 64 * 2**20
"""Bytes of what the clients saw."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many clients there are, and what they do."""

    settings: Config
    suite: SuiteName = "bargein"
    """What clients say."""
    speaking: int = 4
    quiet: int = 20
    idle: int = 180
    turns: int = 6
    """Things that each client says."""
    leavers: int = 100

    def __post_init__(self) -> None:
        if self.speaking < 1 or self.turns < 1 or min(self.quiet, self.idle, self.leavers) < 0:
            raise ConfigError(
                "a load needs somebody who speaks, and no negative numbers",
                "give at least --speaking 1 --turns 1",
            )

    @property
    def answering(self) -> Config:
        """What sessions are configured with."""
        return SUITES[self.suite].settings(self.settings)

    @property
    def sessions(self) -> int:
        """Clients at once."""
        return self.speaking + self.quiet + self.idle


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
        """See `logging.Handler`."""
        fields = vars(record)
        if "change" in fields and fields["item"] is not None:
            self.moments[fields["change"], fields["item"]] = record.created


class Load:
    """One measurement."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._floor = Floor()
        self._said = said(plan.suite, plan.turns)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self._settings = replace(plan.answering, server=_limits(plan))

    def run(self) -> Record:
        """Load the models, serve, and measure."""
        logger = logging.getLogger("voiceloop.server")
        level, logger.propagate = logger.level, False
        logger.setLevel(logging.INFO)
        logger.addHandler(self._floor)
        try:
            with settled(open_engines(self._settings)) as loaded:
                return anyio.run(self._measure, loaded, backend_options=LOOP)
        finally:
            logger.removeHandler(self._floor)
            logger.setLevel(level)
            logger.propagate = True

    async def _measure(self, loaded: Engines) -> Record:
        binding = Binding("localhost", self._port)
        place = Place(binding, Access(binding), load(bundled("web")))
        app = App(nullcontext(loaded), self._settings, place)
        listening, found = anyio.Event(), None
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                await app.run(listening.set)
                tasks.cancel_scope.cancel()  # somebody has ended it

            tasks.start_soon(serve)
            await listening.wait()
            found = await self._phases(app)
            tasks.cancel_scope.cancel()
        if found is None:
            raise KeyboardInterrupt
        return found

    async def _phases(self, app: App) -> Record:
        plan, names = self._plan, tuple(self._said)
        machine = surroundings()
        self._progress("one client alone")
        alone = await self._clients(speaking=(names,))
        counts = ("suite", "speaking", "quiet", "idle", "turns", "leavers")
        settings = {name: getattr(plan, name) for name in counts} | engines(self._settings)
        texts = {name: clip.said.text for name, clip in self._said.items()}
        answers = figures.answers(alone.turns) | figures.understood(alone.turns, texts)
        if plan.sessions == 1:
            turns = [asdict(turn) for turn in alone.turns]
            found: dict[str, Any] = {"turns": turns, "dropped": list(alone.dropped)}
        else:
            found = await self._loaded(app, alone)
        return Record("load", machine, settings, {"alone": answers, **found})

    async def _loaded(self, app: App, alone: Seen) -> dict[str, Any]:
        plan, names = self._plan, tuple(self._said)
        before = memory_mb()
        self._progress(f"{plan.sessions} clients")
        heard = app.metrics.audio_s("in"), app.metrics.audio_s("out")
        worked, begun = time.process_time(), time.monotonic()
        orders = tuple(names[at:] + names[:at] for at in range(plan.speaking))
        held: list[float | None] = []
        loaded = await self._clients(
            speaking=orders,
            quiet=plan.quiet,
            idle=plan.idle,
            during=lambda: held.append(memory_mb()),
        )
        cpu = (time.process_time() - worked) / (time.monotonic() - begun)
        sent_s = app.metrics.audio_s("out") - heard[1]
        most = memory_mb()
        self._progress("interruptions")
        interrupted = await self._clients(speaking=orders, interruption=names[0])
        await self._clients(leavers=min(WARM_LEAVERS, plan.leavers))
        earlier = await self._left(app)
        self._progress(f"{plan.leavers} clients that vanish")
        gone = await self._clients(leavers=plan.leavers)
        later = await self._left(app)
        per_session = None
        if before is not None and most is not None:
            per_session = round((most - before) / plan.sessions, 2)
        return {
            "loaded": figures.answers(loaded.turns)
            | {
                "same_transcripts": figures.same_transcripts(alone.turns, loaded.turns),
                "fairness": figures.fairness(loaded.turns),
                # To the microsecond: a sum of samples may lie half-way between two milliseconds.
                "audio_sent_s": round(sent_s, 6),
                "audio_arrived_s": round(sum(turn.samples for turn in loaded.turns) / RATE, 6),
                "cpu": round(cpu, 3),
                "memory_per_session_mb": per_session,
            },
            "interruptions": figures.interruptions(interrupted.turns, self._floor.moments),
            "dropped": [*alone.dropped, *loaded.dropped, *interrupted.dropped, *gone.dropped],
            "vanished": gone.left,
            "left_before": asdict(earlier),
            "left_after": asdict(later),
        }

    async def _clients(self, *, during: Any = None, **what: Any) -> Seen:
        url = f"ws://localhost:{self._port}/v1/realtime"
        audio = {
            name: base64.b64encode(_wire(clip.pcm)).decode() for name, clip in self._said.items()
        }
        ends = {name: _end(clip) for name, clip in self._said.items()}
        calls = Calls(url, sounds=audio, ends=ends, **what)
        command = [sys.executable, "-m", "voiceloop.bench.load.callers"]
        apart = await anyio.open_process(command, stderr=None, start_new_session=True)
        async with apart as process:  # from the terminal, whose Ctrl-C is not theirs
            assert process.stdin is not None and process.stdout is not None
            await process.stdin.send(json.dumps(asdict(calls)).encode() + b"\n")
            lines = BufferedByteReceiveStream(process.stdout)
            try:
                await lines.receive_until(b"\n", 100)
                if during is not None:
                    during()
                seen = await lines.receive_until(b"\n", MOST_JSON)
            except anyio.IncompleteRead as broken:
                raise VoiceloopError(
                    "the clients of the load broke", "what they said of it stands above"
                ) from broken
        return Seen.of(json.loads(seen))

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


def _limits(plan: Plan) -> ServerConfig:
    """Places for all of them."""
    places = plan.sessions + plan.leavers + WARM_LEAVERS
    return replace(
        plan.settings.server,
        max_sessions=places,
        max_sessions_per_key=places,
        max_parked_per_key=places,
        resume_s=RESUME_S,
    )


def said(suite: SuiteName, count: int) -> dict[str, Clip]:
    """What clients say, by its number and words."""
    clips = build(suite, count)
    return {f"{number}: {clip.said.text}": clip for number, clip in enumerate(clips)}


def _end(clip: Clip) -> int:
    """The sample after the last one of speech, as messages carry it."""
    assert clip.said.end is not None, "suites know where their speech ends"
    return round(clip.said.end * RATE / SPEECH_RATE)


def _wire(pcm: Pcm) -> bytes:
    resampler = Resampler(SPEECH_RATE, RATE)
    heard = np.concatenate((resampler.feed(pcm), resampler.flush()))
    return np.rint(np.clip(heard, -1, 1) * 32767).astype("<i2").tobytes()


def memory_mb() -> float | None:
    """What the process holds now; none where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
