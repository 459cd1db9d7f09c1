"""Clients that interrupt answers, or that vanish in the middle of their turns.

    python -m lab.load.interrupters < CALLS.json

Prints `ready` before the clients begin, and at the end their results as one line of JSON.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import anyio
from websockets.asyncio.client import ClientConnection

from lab.load.callers import Caller, connected, frames
from lab.load.plan import CallerTurn, Calls
from voiceloop.server.port import LOOP

INTERRUPT_AFTER_S = 0.7
"""Seconds from the first audible sample of an answer to the interruption."""
LEAVING_AT_ONCE = 8
"""Number of clients that connect and vanish at the same time."""


class Interrupter(Caller):
    """A client that interrupts every answer."""

    def __init__(self, number: int, calls: Calls, interruption: str) -> None:
        super().__init__(number, calls)
        self._interruption = interruption

    async def ask(self, name: str) -> CallerTurn:
        """Say something, interrupt the answer, and wait until both turns are over."""
        known, earlier = set(self.received.answers), len(self.received.traces)
        found: list[CallerTurn] = []

        async def first() -> None:
            found.append(await super(Interrupter, self).ask(name))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await anyio.sleep_until(await self._sounds_since(known) + INTERRUPT_AFTER_S)
            self.sending.extend(self.sounds[self._interruption])
        while sum(one["response_id"] is not None for one in self.received.traces[earlier:]) < 2:
            await self.received.changed.wait()
        return found[0]

    async def _sounds_since(self, known: set[str]) -> float:
        """Wait for an answer that is not in `known`; return when its first audible sample plays."""
        while True:
            for item_id, answer in self.received.answers.items():
                if item_id not in known and answer.first_audible is not None:
                    return answer.first_audible
            await self.received.changed.wait()


async def interrupt(calls: Calls, interruption: str) -> dict[str, Any]:
    """Run clients that interrupt. Return their turns, and when each answer's last audio arrived."""
    callers = [Interrupter(number, calls, interruption) for number in range(len(calls.speaking))]
    go = anyio.Event()
    go.set()
    async with anyio.create_task_group() as tasks:
        for caller in callers:
            tasks.start_soon(caller.call, calls.url, anyio.Semaphore(0), go)
    since = time.time() - anyio.current_time()
    return {
        "turns": [asdict(turn) for caller in callers for turn in caller.turns],
        "last_audio": {
            item_id: answer.last + since
            for caller in callers
            for item_id, answer in caller.received.answers.items()
        },
    }


async def vanish(calls: Calls, leavers: int) -> dict[str, Any]:
    """Run clients with resumable sessions that begin a turn and vanish. Return their number."""
    left = list[int]()
    sound = frames(base64.b64decode(next(iter(calls.sounds.values()))))

    async def leave(numbers: range) -> None:
        for number in numbers:
            async with connected(calls.url, resume=True) as socket:
                await (_speak_half(socket, sound) if number % 2 else _write(socket))
                socket.transport.abort()
            left.append(number)

    async with anyio.create_task_group() as tasks:
        for first in range(LEAVING_AT_ONCE):
            tasks.start_soon(leave, range(first, leavers, LEAVING_AT_ONCE))
    return {"left": len(left)}


async def _speak_half(socket: ClientConnection, sound: list[str]) -> None:
    for frame in sound[: 2 * len(sound) // 3]:
        await socket.send(frame)
    await _wait_for(socket, "input_audio_buffer.speech_started")


async def _write(socket: ClientConnection) -> None:
    content = [{"type": "input_text", "text": "Why is the sky blue?"}]
    item = {"type": "message", "role": "user", "content": content}
    await socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
    await socket.send(json.dumps({"type": "response.create"}))
    await _wait_for(socket, "response.created")


async def _wait_for(socket: ClientConnection, kind: str) -> None:
    while json.loads(await socket.recv())["type"] != kind:
        pass


async def run(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Run clients that vanish if the plan has `leavers`, otherwise clients that interrupt."""
    calls = Calls(**plan["calls"])
    if leavers := plan.get("leavers"):
        return await vanish(calls, leavers)
    return await interrupt(calls, plan["interruption"])


def main() -> None:
    """Read the plan from standard input, run its clients, and print their results."""
    plan = json.loads(sys.stdin.readline())
    print("ready", flush=True)
    print(json.dumps(anyio.run(run, plan, backend_options=LOOP)), flush=True)


if __name__ == "__main__":
    main()
