"""Long conversations: old turns are summarised in idle time, and nothing grows without end."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from tests.support.clock import VirtualClock
from tests.support.runner import InlineRunner
from tests.support.scripted import (
    ScriptedAsr,
    ScriptedConversation,
    ScriptedLlm,
    ScriptedTts,
    ScriptedVad,
)
from tests.support.user import Lexicon
from tests.test_session import CONFIG, RATE
from voiceloop.audio.devices import NullSpeaker
from voiceloop.conversations.condensing import SUMMARISE, Continuing
from voiceloop.conversations.keeping import KeptConversation, kept
from voiceloop.conversations.records import EARLIER
from voiceloop.conversations.store import ConversationStore
from voiceloop.engines import Engines
from voiceloop.session import Session
from voiceloop.settings.config import Config, LlmConfig
from voiceloop.trace.record import Mark
from voiceloop.types import AudioFrame, Event, Tool, TurnTrace

pytestmark = pytest.mark.virtual

ROOM = 400
"""Tokens of instructions that fit; a token is a word here."""
FRAME_S = 0.2
EVERY_S = 5.0
"""Seconds from one turn to the next: a short talk, then silence."""
LARGE = Config(llm=LlmConfig(target="large", skills="none"), turns=CONFIG.turns)


class SmallContext(ScriptedConversation):
    """A conversation that knows its room."""

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int]:
        return len(system.split()), ROOM


@dataclass
class Forgetful(ScriptedLlm):
    """A model that keeps the newest calls alone, so that the test itself does not grow."""

    asked: list[str] = field(default_factory=list[str])
    sizes: list[int] = field(default_factory=list[int])
    """Words of each history that was put in place."""
    systems: list[str] = field(default_factory=list[str])

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> ScriptedConversation:
        if system == SUMMARISE:
            self.asked.append("")
        return SmallContext(self)

    def look(self) -> None:
        """Count what has been asked, and forget it."""
        for name, argument in self.log:
            if name == "rewrite":
                system, past = argument  # type: ignore[misc]
                texts = [text for one in past for text in (one.said, *one.replied)]
                self.sizes.append(sum(len(str(text).split()) for text in (system, *texts)))
                self.systems = [system]
        self.log.clear()


class Silence:
    """A microphone that hears nothing for a while."""

    def __init__(self, total_s: float) -> None:
        self.total_s = total_s
        self.finished = False

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        size = round(FRAME_S * RATE)
        pcm = np.zeros(size, np.float32)
        for number in range(round(self.total_s / FRAME_S)):
            await anyio.sleep(FRAME_S)
            self.finished = (number + 1) * FRAME_S >= self.total_s - FRAME_S
            yield AudioFrame(pcm, RATE, number * size)

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass


@dataclass
class Long:
    """A long conversation, as it was measured."""

    llm: Forgetful
    busy: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """When each turn began and when its reply had sounded."""
    summaries: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    bytes: dict[int, int] = field(default_factory=dict[int, int])
    """Memory after some turns."""
    held: int = 0
    """Largest number of turns held."""
    latencies: list[float] = field(default_factory=list[float])

    def show(self, event: Event) -> None:
        if not isinstance(event, TurnTrace):
            return
        begun, over = event.marks[Mark.ENDPOINT], event.marks[Mark.SOUND_END]
        self.busy.append((begun, over))
        self.latencies.append(event.marks[Mark.FIRST_SOUND] - begun)
        self.summaries += [(one.start, one.end) for one in event.spans if one.name == "summary"]


def talk(
    path: Path, turns: int, config: Config = LARGE, every_s: float = EVERY_S, step_s: float = 0.02
) -> Long:
    """Write many turns, one after the other. Each step of the model takes `step_s` seconds."""
    reply = ("That is ", "a long ", "answer ", "of six words. ")
    long = Long(Forgetful({}, default=reply, burst_cost=step_s))

    async def write(session: Session, found: KeptConversation) -> None:
        for number in range(1, turns + 1):
            await anyio.sleep(every_s)
            session.write(f"This is turn number {number} and I have a lot to say about it.")
            await anyio.lowlevel.checkpoint()
            long.llm.look()
            long.held = max(long.held, len(found.turns))
            if number in (turns * 2 // 3, turns - 1):
                gc.collect()
                long.bytes[number] = tracemalloc.get_traced_memory()[0]

    async def converse(found: KeptConversation) -> None:
        runners = [InlineRunner() for _ in range(3)]
        engines = Engines(
            *(ScriptedVad(), ScriptedAsr(Lexicon()), runners[0], long.llm, runners[1]),
            *(ScriptedTts(), runners[2]),
        )
        goes_on = Continuing(found, engines, config, print)
        session = Session(
            *(engines, Silence(turns * every_s + 1.8), NullSpeaker(RATE), config, long.show),
            full_duplex=True,
            **goes_on.options(),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(goes_on.keep, session)
            tasks.start_soon(write, session, found)
            await session.run()
            tasks.cancel_scope.cancel()
        await goes_on.aclose()
        long.llm.look()

    with kept(path, "long", print) as found:
        VirtualClock().run(converse, found)
    return long


@pytest.mark.slow
@pytest.mark.parametrize(
    "turns", [pytest.param(100, id="quick"), pytest.param(300, id="all", marks=pytest.mark.full)]
)
def test_many_turns_stay_small_and_are_summarised_in_idle_time_only(
    tmp_path: Path, turns: int
) -> None:
    path = tmp_path / "c.sqlite3"
    tracemalloc.start()
    try:
        long = talk(path, turns)
    finally:
        tracemalloc.stop()
    assert len(long.busy) == turns
    assert long.summaries, "summaries were made"
    for begun, over in long.summaries:
        assert not any(begun < end and start < over for start, end in long.busy)
    assert max(long.llm.sizes) < ROOM, "the prompt is bounded"
    assert EARLIER in long.llm.systems[-1]
    assert long.held < 40
    early, late = long.bytes.values()
    assert late - early < 150_000, "memory is flat: the rest is what this test keeps"
    assert long.latencies[-1] <= 1.3 * long.latencies[4]
    with closing(ConversationStore(path, print)) as store:
        record = store.record("long")
    assert len(record.turns) == turns, "nothing that was said is lost"
    assert record.summaries[-1].text and record.summaries[-1].through < turns


def test_a_slow_summary_stops_after_one_step_when_a_turn_begins(tmp_path: Path) -> None:
    long = talk(tmp_path / "c.sqlite3", 60, every_s=5.3, step_s=0.5)
    assert long.summaries
    for begun, _ in long.summaries:
        assert not any(start <= begun < end for start, end in long.busy)
    steps = len(long.summaries)
    assert steps > 1 and any(
        later - over > 1.0
        for (_, over), (later, _) in zip(long.summaries, long.summaries[1:], strict=False)
    ), "one summary was made in several pauses"


@pytest.mark.parametrize("target", ["starter", "smollm2-135m-instruct"])
def test_models_that_are_too_small_drop_old_turns(tmp_path: Path, target: str) -> None:
    small = Config(llm=LlmConfig(target=target, skills="none"), turns=CONFIG.turns)
    long = talk(tmp_path / "c.sqlite3", 60, small)
    assert not long.summaries and not long.llm.asked
    assert long.llm.sizes and max(long.llm.sizes) < ROOM and long.held < 40
    assert EARLIER not in long.llm.systems[-1]
