"""Asks sessions the everyday questions, and judges their answers.

    python -m lab.everyday.run --preset cpu --out lab/everyday/answers-cpu.json

Each talk has a session of its own, in which everything is typed. The microphone is silent, and the
speaker discards its sound at once. The clock is fixed at the time that `questions.toml` gives.
espeak speaks unless a flag names another engine, since the voice changes no answer. Any setting may
be given as a flag.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
from msgspec.structs import replace

from lab.everyday.rules import Answer, Ask, Questions, Talk, read, wrong
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bench.progress import Progress
from voiceloop.config import Config, TtsConfig
from voiceloop.engines import Engines
from voiceloop.errors import VoiceloopError
from voiceloop.flags import Command, parse, written
from voiceloop.loading import open_engines
from voiceloop.outputs import replacing
from voiceloop.session import Session
from voiceloop.skills.known import VoiceAdjustment
from voiceloop.startup import configure, settled
from voiceloop.status import engine_names
from voiceloop.trace.record import Mark
from voiceloop.turn.skills import Skills
from voiceloop.types import AudioFrame, Event, TokenBurst, ToolCall, TurnTrace

QUESTIONS = Path(__file__).with_name("questions.toml")
CLOCK = datetime(2026, 11, 26, 15, 42)
"""The time that the clock of the sessions shows."""
SPEAKER_RATE = 24_000
FRAME_S = 0.1
"""Seconds between two silent frames of the microphone."""
ENDED_S = 1.0
"""Seconds after the last reply within which a session that ends by itself must have ended."""


class Everyday(Command, frozen=True, kw_only=True):
    """Ask the everyday questions, and judge the answers."""

    out: Annotated[Path | None, written("A.json")] = None
    """Write all answers with their faults."""
    kinds: tuple[str, ...] = ()
    """Only talks of these kinds."""


class SilentMicrophone:
    """A microphone that hears silence until `end` is called; implements `devices.Microphone`."""

    def __init__(self) -> None:
        self.finished = False
        self._ended = anyio.Event()

    def end(self) -> None:
        """End the recording: `finished` becomes True with the next frame."""
        self._ended.set()

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of silence."""
        while True:
            with anyio.move_on_after(FRAME_S):
                await self._ended.wait()
                self.finished = True
            yield AudioFrame(silence(samples(10)), SPEECH_RATE, 0)

    def hold(self) -> None:
        """Do nothing: there is no sound to hold back."""

    def release(self) -> None:
        """Do nothing: no sound was held back."""


class Watch:
    """A collector of the events that a session shows in one turn."""

    def __init__(self) -> None:
        self.text = ""
        self.calls = list[ToolCall]()
        self.trace: TurnTrace | None = None
        self.over = anyio.Event()
        """Set when a turn is over."""

    def begin(self) -> None:
        """Begin another turn: discard the events of the last one."""
        self.text, self.calls, self.trace, self.over = "", [], None, anyio.Event()

    def show(self, event: Event) -> None:
        """Collect an event of the session."""
        match event:
            case TokenBurst():
                self.text += event.text
            case ToolCall():
                self.calls.append(event)
            case TurnTrace():
                self.trace = event
                self.over.set()
            case _:
                pass


def deeds(skills: Skills, before: VoiceAdjustment) -> list[str]:
    """Return the effects of a turn in the words of `Ask.does`; `before` is the voice before the
    turn."""
    now = skills.voice
    found = [f"timer {round((timer.due - CLOCK).total_seconds())}" for timer in skills.timers]
    found += [f"only {found[0]}"] if len(found) == 1 else []
    found += ["louder"] * (now.gain > before.gain) + ["softer"] * (now.gain < before.gain)
    found += ["faster"] * (now.speed > before.speed) + ["slower"] * (now.speed < before.speed)
    return found


async def hold(talk: Talk, engines: Engines, config: Config, questions: Questions) -> list[Any]:
    """Hold one talk. Return the records of its turns that have a rule."""
    microphone, watch, over = SilentMicrophone(), Watch(), anyio.Event()
    speaker = NullSpeaker(SPEAKER_RATE, pace="max")
    skills = Skills(paced=engines.tts.paces)
    session = Session(
        engines,
        microphone,
        speaker,
        config,
        watch.show,
        skills=skills,
        ends=True,
        wall_clock=lambda: CLOCK,
    )
    records = list[Any]()

    async def converse() -> None:
        await session.run()
        over.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(converse)
        await anyio.wait_all_tasks_blocked()
        before = ""
        for ask in talk.turns:
            watch.begin()
            voice = skills.voice
            session.write(ask.say)
            await watch.over.wait()
            if ask.judged:
                answer = await _answer(ask, watch, over, config.llm.max_new_tokens)
                answer = answer._replace(done=[*answer.done, *deeds(skills, voice)])
                faults = wrong(ask, answer, before, questions)
                records.append(_record(talk.kind, ask, answer, watch, faults))
            before = watch.text.strip()
        microphone.end()
    return records


async def _answer(ask: Ask, watch: Watch, over: anyio.Event, most: int) -> Answer:
    """Return the answer of the turn that is over. A reply has at most `most` tokens."""
    done, trace = list[str](), watch.trace
    assert trace is not None, "the turn is over"
    if ask.does == "ends":
        with anyio.move_on_after(ENDED_S):
            await over.wait()
            done.append("ends")
    tokens = int(trace.counters.get("tokens", 0))
    cut = tokens >= most or bool(trace.counters.get("too_long"))
    return Answer(watch.text.strip(), tokens, cut, done)


def _record(kind: str, ask: Ask, answer: Answer, watch: Watch, faults: list[str]) -> dict[str, Any]:
    trace = watch.trace
    assert trace is not None, "the turn is over"
    first = trace.marks.get(Mark.FIRST_BURST)
    return {
        "kind": kind,
        "say": ask.say,
        "reply": answer.text,
        "wrong": faults,
        "outcome": trace.outcome,
        "calls": [{"name": call.name, **call.arguments} for call in watch.calls],
        "tokens": answer.tokens,
        "first_ms": first and round((first - trace.marks[Mark.ENDPOINT]) * 1000),
    }


async def ask_all(engines: Engines, config: Config, questions: Questions) -> list[Any]:
    """Hold all talks in order. Return the records of their turns."""
    found = list[Any]()
    with Progress(sys.stderr) as progress:
        for number, talk in enumerate(questions.talk, start=1):
            progress(f"talk {number} of {len(questions.talk)}")
            found += await hold(talk, engines, config, questions)
    return found


def table(records: Sequence[Any]) -> list[str]:
    """Return lines that count the right answers of each kind, and that show every wrong one."""
    judged = Counter(record["kind"] for record in records)
    right = Counter(record["kind"] for record in records if not record["wrong"])
    lines = [f"{kind:<12} {right[kind]:>3} of {count}" for kind, count in judged.items()]
    lines.append(f"{'together':<12} {right.total():>3} of {judged.total()}")
    for record in records:
        if record["wrong"]:
            why = "; ".join(record["wrong"])
            lines += ["", f"{record['kind']}: {record['say']}", f"  {record['reply']}", f"  {why}"]
    return lines


def save(path: Path, record: object) -> None:
    """Write a record to a file as JSON."""
    with replacing(path) as file:
        json.dump(record, file, indent=1)
        file.write("\n")


def main(argv: Sequence[str]) -> int:
    """Run the command line. Return the exit status."""
    command = parse({"run": Everyday}, ["run", *argv])
    assert isinstance(command, Everyday), "its help is above"
    config = command.settings
    if command.origins.get("tts.engine") != "flag":
        config = replace(config, tts=TtsConfig())
    questions = read(tomllib.loads(QUESTIONS.read_text(encoding="utf-8")))
    if command.kinds:
        chosen = tuple(talk for talk in questions.talk if talk.kind in command.kinds)
        questions = replace(questions, talk=chosen)
    configure(config.threads)
    with settled(open_engines(config)) as engines:
        records = anyio.run(partial(ask_all, engines, config, questions))
    print(*table(records), sep="\n")
    if command.out:
        save(command.out, {"running": engine_names(config), "answers": records})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except VoiceloopError as error:
        sys.exit(f"{error.message}\n{error.hint}")
