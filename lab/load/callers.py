"""The clients of the load: some speak, some send silence, and some send nothing at all.

    python -m lab.load.callers < CALLS.json

Prints `ready` once all clients are connected, and at the end their results as one line of JSON. The
clients learn about the server through their sockets alone.
"""

from __future__ import annotations

import base64
import json
import math
import random
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import anyio
import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from lab.load.plan import FRAME_MS, RATE, CallerTurn, CallResults, Calls
from voiceloop.audio.playback import AUDIBLE
from voiceloop.server.port import LOOP

FRAME = RATE * FRAME_MS // 1000
PER_MS = RATE // 1000
PATIENCE_S = 30.0
"""Seconds after which a turn that has not been answered counts as lost."""
BETWEEN_S = (0.3, 1.0)
"""Bounds of a client's silence between an answer and its next words, in seconds."""

Event = dict[str, Any]


def append(pcm: bytes) -> str:
    """Return a message that appends `pcm` (PCM16) to the server's input buffer."""
    audio = base64.b64encode(pcm).decode()
    return f'{{"type":"input_audio_buffer.append","audio":"{audio}"}}'


SILENCE = append(bytes(2 * FRAME))


def frames(pcm: bytes) -> list[str]:
    """Split `pcm` into messages of `FRAME` samples. The last one is filled up with silence."""
    size = 2 * FRAME
    pieces = [pcm[at : at + size] for at in range(0, len(pcm), size)]
    return [append(piece.ljust(size, b"\0")) for piece in pieces]


@asynccontextmanager
async def connected(url: str, *, resume: bool = False) -> AsyncIterator[ClientConnection]:
    """Open a session in which the server sends transcripts and traces. With `resume` it also sends
    tokens, with which the session can be resumed."""
    async with connect(url, compression=None, max_size=None) as socket:
        await socket.recv()
        audio = {"input": {"transcription": {}, "turn_detection": {"type": "semantic_vad"}}}
        session = {
            "type": "realtime",
            "audio": audio,
            "voiceloop": {"traces": True, "resume": resume},
        }
        await socket.send(json.dumps({"type": "session.update", "session": session}))
        while json.loads(await socket.recv())["type"] != "session.updated":
            pass
        yield socket


@dataclass(slots=True)
class HeardAnswer:
    """The audio of one answer, as it arrives. Times are in seconds of the event loop's clock."""

    samples: int = 0
    first_audible: float | None = None
    """When the first audible sample is played, if the client plays audio as soon as it arrives.
    None until an audible sample has arrived."""
    plays_until: float = 0.0
    """When all audio that has arrived will have been played."""
    last: float = 0.0
    """When the last audio arrived."""
    underruns: int = 0

    def add(self, pcm: bytes, now: float) -> None:
        """Add audio that arrived at the time `now`."""
        if self.samples and now > self.plays_until:
            self.underruns += 1
        if self.first_audible is None:
            loud = np.flatnonzero(np.abs(np.frombuffer(pcm, "<i2")) >= AUDIBLE * 32768)
            if len(loud):
                self.first_audible = max(now, self.plays_until) + float(loud[0]) / RATE
        self.plays_until = max(now, self.plays_until) + len(pcm) / 2 / RATE
        self.samples, self.last = self.samples + len(pcm) // 2, now


class Received:
    """The answers, transcripts and traces that a client has received."""

    def __init__(self) -> None:
        self.answers: dict[str, HeardAnswer] = {}
        self.transcripts: dict[str, str] = {}
        self.items: dict[str, str] = {}
        """The item id of each response's message, by response id."""
        self.traces: list[Event] = []
        self.changed = anyio.Event()

    def take(self, event: Event, now: float) -> None:
        """Record an event that arrived at the time `now`."""
        match event["type"]:
            case "response.output_audio.delta":
                answer = self.answers.setdefault(event["item_id"], HeardAnswer())
                answer.add(base64.b64decode(event["delta"]), now)
            case "conversation.item.input_audio_transcription.completed":
                self.transcripts[event["item_id"]] = event["transcript"]
            case "response.output_item.added":
                self.items.setdefault(event["response_id"], event["item"]["id"])
            case "voiceloop.trace":
                self.traces.append(event)
            case _:
                return
        self.changed.set()
        self.changed = anyio.Event()


class Caller:
    """A client that streams audio without a break: its questions, if it has any, and silence for
    the rest of the time."""

    def __init__(self, number: int, calls: Calls) -> None:
        self._number = number
        self._says = calls.speaking[number] if number < len(calls.speaking) else ()
        self.sounds = {name: frames(base64.b64decode(pcm)) for name, pcm in calls.sounds.items()}
        self._ends = calls.ends
        self._rng = random.Random(number)
        self.sending: deque[str] = deque()
        self._sent: list[float] = []
        """When each frame was sent, in seconds of the event loop's clock."""
        self.received = Received()
        self.turns: list[CallerTurn] = []

    async def call(self, url: str, ready: anyio.Semaphore, go: anyio.Event) -> None:
        """Connect, release `ready` and wait for `go`; then say everything, or stay silent."""
        async with connected(url) as socket:
            ready.release()
            await go.wait()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stream, socket)
                tasks.start_soon(self._read, socket)
                if self._says:
                    for name in self._says:
                        await anyio.sleep(self._rng.uniform(*BETWEEN_S))
                        self.turns.append(await self.ask(name))
                    tasks.cancel_scope.cancel()

    async def _stream(self, socket: ClientConnection) -> None:
        # Real microphones are not synchronised.
        begun = anyio.current_time() + self._rng.uniform(0, FRAME_MS / 1000)
        while True:
            await anyio.sleep_until(begun + len(self._sent) * FRAME_MS / 1000)
            self._sent.append(anyio.current_time())
            await socket.send(self.sending.popleft() if self.sending else SILENCE)

    async def _read(self, socket: ClientConnection) -> None:
        async for message in socket:
            self.received.take(json.loads(message), anyio.current_time())

    async def ask(self, name: str) -> CallerTurn:
        """Say the sound `name`, and return the turn with its results. Without an answer within
        `PATIENCE_S` the turn is lost."""
        earlier = len(self.received.traces)
        begun = len(self._sent) + len(self.sending)
        self.sending.extend(self.sounds[name])
        turn = CallerTurn(self._number, name)
        with anyio.move_on_after(PATIENCE_S):
            trace = await self.over(earlier)
            return self._with_results(turn, trace, begun * FRAME + self._ends[name])
        return turn

    async def over(self, earlier: int) -> Event:
        """Wait until the trace of an answered turn has arrived, and return it. The first `earlier`
        traces are skipped."""
        while True:
            for event in self.received.traces[earlier:]:
                if event["response_id"] is not None:
                    return event
            await self.received.changed.wait()

    def _with_results(self, turn: CallerTurn, event: Event, end: int) -> CallerTurn:
        """Return `turn` with the results of its trace in `event`. The speech of the turn ends
        before sample `end`."""
        item_id = self.received.items.get(event["response_id"], "")
        answer = self.received.answers.get(item_id, HeardAnswer())
        trace = event["trace"]
        ended_ms, first, elapsed, late = trace["speech_end_ms"], answer.first_audible, None, 0.0
        if ended_ms is not None and first is not None:
            true, found = self._said_at(end), self._said_at(round(ended_ms * PER_MS))
            elapsed, late = round((first - true) * 1000, 3), round((found - true) * 1000, 3)
        return replace(
            turn,
            item_id=item_id,
            outcome=trace["outcome"],
            transcript=self.received.transcripts.get(event["item_id"] or "", ""),
            samples=answer.samples,
            voice_to_voice_ms=elapsed,
            found_late_ms=late,
            parts_ms={part["name"]: part["ms"] for part in trace["parts"]},
            served_voice_to_voice_ms=trace["voice_to_voice_ms"],
            served_endpoint_to_sound_ms=trace["endpoint_to_sound_ms"],
            underruns=answer.underruns,
        )

    def _said_at(self, sample: int) -> float:
        """Return when `sample` was spoken. A frame is sent as soon as all of it has been spoken."""
        frame = max(0, math.ceil(sample / FRAME) - 1)
        return self._sent[frame] - ((frame + 1) * FRAME - sample) / RATE


class Clients:
    """All clients of a `Calls`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._ready = anyio.Semaphore(0)
        self._go = anyio.Event()
        self._dropped: list[str] = []

    async def run(self) -> CallResults:
        """Connect all clients, print `ready`, and wait until the speaking ones are done."""
        calls = self._calls
        streaming = len(calls.speaking) + calls.quiet
        callers = [Caller(number, calls) for number in range(streaming)]
        async with anyio.create_task_group() as waiting:
            async with anyio.create_task_group() as speaking:
                for number, caller in enumerate(callers):
                    group = speaking if number < len(calls.speaking) else waiting
                    group.start_soon(self._call, caller)
                for _ in range(calls.idle):
                    waiting.start_soon(self._idle)
                for _ in range(streaming + calls.idle):
                    await self._ready.acquire()
                print("ready", flush=True)
                self._go.set()
            waiting.cancel_scope.cancel()
        turns = [turn for caller in callers for turn in caller.turns]
        return CallResults(tuple(turns), tuple(self._dropped))

    async def _call(self, caller: Caller) -> None:
        try:
            await caller.call(self._calls.url, self._ready, self._go)
        except* (ConnectionClosed, OSError) as broken:
            self._dropped.append(str(broken.exceptions[0]))

    async def _idle(self) -> None:
        try:
            async with connected(self._calls.url) as socket:
                self._ready.release()
                async for _ in socket:
                    pass
        except ConnectionClosed as broken:
            self._dropped.append(str(broken))


def main() -> None:
    """Read a `Calls` from standard input, run its clients, and print their results."""
    calls = Calls(**json.loads(sys.stdin.readline()))
    seen = anyio.run(Clients(calls).run, backend_options=LOOP)
    print(json.dumps(asdict(seen)), flush=True)


if __name__ == "__main__":
    main()
