"""What tests of recordings share: conversations of scripted engines that are recorded."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from tests.support.clock import LateSpeaker, VirtualClock
from tests.support.run import WALL_CLOCK, quietly, scripted_engines
from tests.support.scenario import Scenario
from tests.support.user import Lexicon, ScriptedMicrophone
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.engines import Engines
from voiceloop.recording.recording import MOST_BYTES, Core, Recording, Surroundings, prepare
from voiceloop.session import Session
from voiceloop.turn.resources import OVERLAPS
from voiceloop.types import Event

Requests = Callable[[Session], Coroutine[Any, Any, None]]


@dataclass
class Recorded:
    """A conversation, and the recording of it."""

    folder: Path
    events: list[Event]
    notices: list[str]
    """What the recording told the user."""


async def nothing(session: Session) -> None:
    """Request nothing."""


def record(
    parent: Path,
    scenario: Scenario,
    *,
    requests: Requests = nothing,
    around: Callable[[Surroundings], Surroundings] = lambda inner: inner,
    core: Core | None = None,
    most_bytes: int = MOST_BYTES,
) -> Recorded:
    """Record a scenario in a new folder in `parent`, while `requests` runs. `around` may stand
    between the session and the recording, and `core` decides instead of the session's own."""
    clock, lexicon = VirtualClock(), Lexicon()
    microphone = ScriptedMicrophone(
        [sound.say() for sound in scenario.user],
        lexicon,
        partial(clock.wait, rank=0),
        silence_s=scenario.silence_s,
        patience_s=scenario.patience_s,
    )
    before = set(parent.iterdir()) if parent.exists() else set[Path]()
    events, notices = list[Event](), list[str]()

    def show(event: Event) -> None:
        events.append(event)
        microphone.notice(event)

    async def converse() -> None:
        engines: Engines = scripted_engines(scenario, lexicon, clock)
        recording = Recording(
            *(parent, scenario.config, notices.append),
            full_duplex=scenario.full_duplex,
            most_bytes=most_bytes,
        )
        inner = Surroundings(microphone, LateSpeaker(SPEECH_RATE, clock, rank=4), show)
        outer = around(recording.around(inner if core is None else inner._replace(core=core)))
        session = Session(
            *(engines, outer.microphone, outer.speaker, scenario.config, outer.show),
            core=outer.core,
            full_duplex=scenario.full_duplex,
            overlap=OVERLAPS[scenario.overlap],
            wall_clock=lambda: WALL_CLOCK,
        )
        async with recording, anyio.create_task_group() as tasks:
            tasks.start_soon(requests, session)
            await session.run()
            tasks.cancel_scope.cancel()

    prepare(parent)
    with quietly():
        clock.run(converse)
    (folder,) = set(parent.iterdir()) - before or {parent}
    return Recorded(folder, events, notices)
