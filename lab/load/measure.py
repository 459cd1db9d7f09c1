"""Measures the server with many clients at once.

The server runs in this process, as `voiceloop serve` runs it. Its clients run in another process
and connect through real sockets: first one client alone, then all of them.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import numpy as np
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec.structs import replace

from lab.conversations import suites
from lab.load import figures
from lab.load.plan import RATE, CallResults, Calls
from voiceloop.assembly.loading import open_engines
from voiceloop.audio.frames import SPEECH_RATE, Resampler
from voiceloop.bench.clips import Clip
from voiceloop.bench.command import Bench
from voiceloop.bench.latency import brief
from voiceloop.bench.record import BenchRecord, engines, surroundings
from voiceloop.bench.suites import build
from voiceloop.bundled import bundled
from voiceloop.engines import Engines
from voiceloop.errors import VoiceloopError
from voiceloop.process import settled
from voiceloop.server.access.auth import Access
from voiceloop.server.app import App
from voiceloop.server.port import LOOP, Binding
from voiceloop.server.resume.store import MemoryStore
from voiceloop.server.routes import load
from voiceloop.server.service import Service
from voiceloop.settings.flags import written
from voiceloop.types import Pcm

MOST_JSON = 64 * 2**20
"""Maximum size of the results of all clients, in bytes."""


LoadSuite = Literal["bargein", "questions"]


class Load(Bench, frozen=True, kw_only=True):
    """Measure the server with many clients at once."""

    suite: LoadSuite = "bargein"
    """What the clients say. `bargein`: questions with long answers. `questions`: questions of any
    kind, with brief answers."""
    speaking: Annotated[int, written("N")] = 4
    """Number of clients that ask and are answered, all at the same time. If there is only one
    client in all, it is measured once, alone."""
    quiet: Annotated[int, written("M")] = 20
    """Number of further clients that send silence."""
    idle: Annotated[int, written("K")] = 180
    """Number of further clients that send nothing."""
    turns: Annotated[int, written("N")] = 6
    """Number of questions of each client that speaks."""
    leavers: Annotated[int, written("N")] = 0
    """Number of clients that vanish in the middle of a turn, after the others have interrupted
    answers. The default is that nobody interrupts and nobody vanishes."""


class LoadMeasurement:
    """One measurement of the server with many clients."""

    def __init__(self, plan: Load, progress: Callable[[str], None]) -> None:
        self.plan = plan
        self.progress = progress
        self.said = said(plan.suite, plan.turns)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self._sessions = plan.speaking + plan.quiet + plan.idle
        settings = brief(plan.settings) if plan.suite == "questions" else plan.settings
        places = {"max_sessions": self._sessions, "max_sessions_per_key": self._sessions}
        self.settings = replace(settings, server=replace(settings.server, **places))

    def run(self) -> BenchRecord:
        """Load the models, serve and measure."""
        with settled(open_engines(self.settings)) as loaded:
            return anyio.run(self._measure, loaded, backend_options=LOOP)

    async def _measure(self, loaded: Engines) -> BenchRecord:
        binding = Binding("localhost", self._port)
        site = load(bundled("web"))
        service = Service(nullcontext(loaded), self.settings, Access(binding), site, MemoryStore())
        app = App(service, binding)
        listening, found = anyio.Event(), None
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                await app.run(listening.set)
                tasks.cancel_scope.cancel()  # the server was ended from outside

            tasks.start_soon(serve)
            await listening.wait()
            found = await self._phases(service)
            tasks.cancel_scope.cancel()
        if found is None:
            raise KeyboardInterrupt
        return found

    async def _phases(self, service: Service) -> BenchRecord:
        plan, names = self.plan, tuple(self.said)
        machine = surroundings()
        self.progress("one client alone")
        alone = await self._clients(speaking=(names,))
        counts = ("suite", "speaking", "quiet", "idle", "turns")
        settings = {name: getattr(plan, name) for name in counts} | engines(self.settings)
        texts = {name: clip.said.text for name, clip in self.said.items()}
        answers = figures.answers(alone.turns) | figures.understood(alone.turns, texts)
        if self._sessions == 1:
            single = {"turns": [asdict(turn) for turn in alone.turns]}
            found: dict[str, Any] = {"dropped": list(alone.dropped)}
        else:
            single, found = {}, await self.loaded(service, alone)
        return BenchRecord("load", machine, settings, {"alone": answers, **found}, single)

    async def loaded(self, service: Service, alone: CallResults) -> dict[str, Any]:
        """Run all clients at the same time and return their figures. `alone` has the results of one
        client alone."""
        plan, names = self.plan, tuple(self.said)
        before = memory_mb()
        self.progress(f"{self._sessions} clients")
        sent = service.metrics.audio_s("out")
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
        sent_s = service.metrics.audio_s("out") - sent
        most = memory_mb()
        per_session = None
        if before is not None and most is not None:
            per_session = round((most - before) / self._sessions, 2)
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
            "dropped": [*alone.dropped, *loaded.dropped],
        }

    async def _clients(
        self, *, during: Callable[[], object] = lambda: None, **what: Any
    ) -> CallResults:
        found = await self.exchange("lab.load.callers", self.calls(**what), during)
        return CallResults.of(found)

    def calls(self, **what: Any) -> dict[str, Any]:
        """Return a `Calls` as a dictionary. It has all sounds; `what` gives the rest of its
        fields."""
        url = f"ws://localhost:{self._port}/v1/realtime"
        sounds = {
            name: base64.b64encode(_wire(clip.pcm)).decode() for name, clip in self.said.items()
        }
        ends = {name: _end(clip) for name, clip in self.said.items()}
        return asdict(Calls(url, sounds=sounds, ends=ends, **what))

    async def exchange(
        self, module: str, calls: dict[str, Any], during: Callable[[], object] = lambda: None
    ) -> dict[str, Any]:
        """Run the clients of `module` in their own process; send `calls` and return their results.

        `during` is called once all clients are connected. Raises VoiceloopError if they fail.
        """
        command = [sys.executable, "-m", module]
        # A process in a new POSIX session does not get Ctrl-C from the terminal.
        apart = await anyio.open_process(command, stderr=None, start_new_session=True)
        async with apart as process:
            assert process.stdin is not None and process.stdout is not None
            await process.stdin.send(json.dumps(calls).encode() + b"\n")
            lines = BufferedByteReceiveStream(process.stdout)
            try:
                await lines.receive_until(b"\n", 100)
                during()
                return json.loads(await lines.receive_until(b"\n", MOST_JSON))
            except anyio.IncompleteRead as broken:
                raise VoiceloopError(
                    "the clients of the load broke", "what they said of it stands above"
                ) from broken


def said(suite: LoadSuite, count: int) -> dict[str, Clip]:
    """Return the clips that clients say, by name. A name is the clip's number and words."""
    clips = build(suite, count) if suite == "questions" else suites.build(suite, count)
    return {f"{number}: {clip.said.text}": clip for number, clip in enumerate(clips)}


def _end(clip: Clip) -> int:
    """Return the index of the sample after the end of speech in `clip`, at `RATE`."""
    assert clip.said.end is not None, "suites know where their speech ends"
    return round(clip.said.end * RATE / SPEECH_RATE)


def _wire(pcm: Pcm) -> bytes:
    resampler = Resampler(SPEECH_RATE, RATE)
    heard = np.concatenate((resampler.feed(pcm), resampler.flush()))
    return np.rint(np.clip(heard, -1, 1) * 32767).astype("<i2").tobytes()


def memory_mb() -> float | None:
    """Return the resident memory of this process in MB; None if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
