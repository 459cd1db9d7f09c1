"""`voiceloop bench everyday`: asks ninety everyday things, and judges the answers by rules.

Each talk has a session of its own, in which everything is typed, at the time that `everyday.toml`
gives. That file explains the rules. The microphone of the session is silent, and the speaker
discards its sound at once.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

import anyio
from msgspec import Struct, convert
from msgspec.structs import replace

from voiceloop.asr.transcript import normalise
from voiceloop.assembly.loading import open_engines
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bench.command import BenchEveryday, Found
from voiceloop.bench.machine import surroundings
from voiceloop.bench.record import BenchRecord, spread
from voiceloop.engines import Engines
from voiceloop.languages.spoken import KNOWN
from voiceloop.process import settled
from voiceloop.session import Session
from voiceloop.settings.config import Config, TtsConfig
from voiceloop.settings.flags import Command
from voiceloop.skills.known import VoiceAdjustment
from voiceloop.status import engine_names
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.trace.record import Mark
from voiceloop.turn.skills import Skills
from voiceloop.types import AudioFrame, Event, TokenBurst, ToolCall, TurnTrace

CLOCK = datetime(2026, 11, 26, 15, 42)
"""The time that the clock of a session shows when it begins."""
SPEAKER_RATE = 24_000
Talk = TypeVar("Talk")
FRAME_S = 0.1
"""Seconds between two silent frames of the microphone."""
ADDED = ("wishes", "corrections", "follow-ups")
"""Kinds of the thirty questions that were added to the first sixty."""
MOST_TOKENS = 100
"""Maximum number of tokens in a right answer."""
ENDED_S = 1.0
"""Seconds after the last reply within which a session that ends by itself must have ended."""
_WHOLE = re.compile(r"[.!?…][\"'”’)\]]*$")  # noqa: RUF001
_UNSPEAKABLE = ("So", "Sk", "Cn", "Co", "Cs", "Cc")
"""Unicode categories of characters that cannot be spoken."""


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


class TypedSession:
    """A session whose user types; its attributes tell what it showed in the last turn."""

    def __init__(
        self,
        engines: Engines,
        config: Config,
        skills: Skills,
        wall_clock: Callable[[], datetime],
        toolbox: Toolbox,
    ) -> None:
        """Prepare the session. `typing` runs it."""
        self.text = ""
        """The reply."""
        self.calls = list[ToolCall]()
        self.trace = TurnTrace(0)
        self.ended = anyio.Event()
        """Set when the session is over."""
        self.microphone = SilentMicrophone()
        self._turn_over = anyio.Event()
        self._session = Session(
            *(engines, self.microphone, NullSpeaker(SPEAKER_RATE, pace="max"), config, self._show),
            skills=skills,
            toolbox=toolbox,
            ends=True,
            wall_clock=wall_clock,
        )

    async def run(self) -> None:
        """Run the session until the microphone ends, or a goodbye was said."""
        await self._session.run()
        self.ended.set()

    async def say(self, text: str) -> None:
        """Type a text, and wait until the turn is over."""
        self.text, self.calls, self._turn_over = "", [], anyio.Event()
        self._session.write(text)
        await self._turn_over.wait()
        self.text = self.text.strip()

    def _show(self, event: Event) -> None:
        match event:
            case TokenBurst():
                self.text += event.text
            case ToolCall():
                before = [call for call in self.calls if call.call_id != event.call_id]
                self.calls = [*before, event]
            case TurnTrace():
                self.trace = event
                self._turn_over.set()
            case _:
                pass


@asynccontextmanager
async def typing(
    engines: Engines,
    config: Config,
    skills: Skills,
    wall_clock: Callable[[], datetime] = lambda: CLOCK,
    toolbox: Toolbox = NO_TOOLS,
) -> AsyncGenerator[TypedSession, None]:
    """Run a session in which everything is typed, until the context ends."""
    session = TypedSession(engines, config, skills, wall_clock, toolbox)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        await anyio.wait_all_tasks_blocked()
        yield session
        session.microphone.end()


def held(
    talks: Sequence[Talk],
    hold: Callable[[Talk, Engines, Config], Awaitable[Sequence[Any]]],
    config: Config,
    progress: Callable[[str], None],
) -> list[Any]:
    """Load the engines of `config`, and hold all talks in order. Return their records."""
    found = list[Any]()

    async def hold_each() -> None:
        for number, talk in enumerate(talks, start=1):
            progress(f"{number} of {len(talks)}")
            found.extend(await hold(talk, engines, config))

    with settled(open_engines(config)) as engines:
        anyio.run(hold_each)
    return found


def with_espeak(command: Command) -> Config:
    """Return the settings of a command. espeak speaks unless a flag names another engine, since the
    voice changes no answer."""
    named = command.origins.get("tts.engine") == "flag"
    return command.settings if named else replace(command.settings, tts=TtsConfig())


class JudgedText(Struct, frozen=True, forbid_unknown_fields=True):
    """A text of the user, and the rule for its answer. Without a rule the answer is not judged."""

    say: str
    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    words: tuple[int, int] | None = None
    does: str = ""

    @property
    def judged(self) -> bool:
        """True if there is a rule."""
        return bool(self.any or self.all or self.none or self.words or self.does)


class TypedTalk(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation from its beginning."""

    kind: str
    turns: tuple[JudgedText, ...]


class Questions(Struct, frozen=True, forbid_unknown_fields=True):
    """All talks, and the patterns that their rules share."""

    patterns: Mapping[str, str]
    """Regular expressions that rules refer to by name."""
    talk: tuple[TypedTalk, ...]

    def named(self, pattern: str) -> str:
        """Return the shared pattern of this name; if there is none, return `pattern` itself."""
        return self.patterns.get(pattern, pattern)


class TypedAnswer(NamedTuple):
    """The answer to one text of the user."""

    text: str
    """The reply as written; empty if there was none."""
    tokens: int = 0
    cut: bool = False
    """True if the reply was cut off at the maximum number of tokens."""
    done: Sequence[str] = ()
    """Effects of the answer in the words of `JudgedText.does`, except for `stops` and `repeats`."""


def questions() -> Questions:
    """Return the questions."""
    text = (files("voiceloop.bench") / "everyday.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), Questions)


def run(command: BenchEveryday, progress: Callable[[str], None]) -> Found:
    """JudgedText the questions, and count the right answers. Raises what loading raises."""
    config, machine = with_espeak(command), surroundings()
    records = ask(config, progress)
    judged = Counter(record["kind"] for record in records)
    right = Counter(record["kind"] for record in records if not record["wrong"])
    figures = {
        "right": {kind: f"{right[kind]} of {count}" for kind, count in judged.items()},
        "first_ms": spread([record["first_ms"] for record in records]),
    }
    lines = [f"{right.total()} of {len(records)} are right by the rules."]
    for record in records:
        if record["wrong"]:
            why = "; ".join(record["wrong"])
            lines += ["", f"{record['kind']}: {record['say']}", f"  {record['reply']}", f"  {why}"]
    running = {"running": engine_names(config)}
    return BenchRecord(
        "everyday", machine, running, figures, {"answers": records}, "\n".join(lines)
    ), {}


def ask(config: Config, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Hold all talks with the engines of `config`. Return a record of each judged answer."""
    asked = questions()
    return held(asked.talk, partial(_hold, asked), config, progress)


async def _hold(
    questions: Questions, talk: TypedTalk, engines: Engines, config: Config
) -> list[dict[str, Any]]:
    """Hold one talk. Return the records of its turns that have a rule."""
    skills, records, before = Skills(paced=engines.tts.paces), list[dict[str, Any]](), list[str]()
    async with typing(engines, config, skills) as session:
        for ask in talk.turns:
            voice = skills.voice
            await session.say(ask.say)
            if ask.judged:
                answer = await _answer(ask, session, config.llm.max_new_tokens)
                answer = answer._replace(done=[*answer.done, *_deeds(skills, voice)])
                faults = wrong(ask, answer, before[-1] if before else "", questions)
                records.append(_record(talk.kind, ask, answer, session, before, faults))
            before = [*before, ask.say, session.text]
    return records


async def _answer(ask: JudgedText, session: TypedSession, most: int) -> TypedAnswer:
    """Return the answer of the turn that is over. A reply has at most `most` tokens."""
    done, counters = list[str](), session.trace.counters
    if ask.does == "ends":
        with anyio.move_on_after(ENDED_S):
            await session.ended.wait()
            done.append("ends")
    tokens = int(counters.get("tokens", 0))
    cut = tokens >= most or bool(counters.get("too_long"))
    return TypedAnswer(session.text, tokens, cut, done)


def _record(
    kind: str,
    ask: JudgedText,
    answer: TypedAnswer,
    session: TypedSession,
    before: Sequence[str],
    faults: Sequence[str],
) -> dict[str, Any]:
    marks = session.trace.marks
    first = marks.get(Mark.FIRST_BURST)
    return {
        "kind": kind,
        "before": before,
        "say": ask.say,
        "reply": answer.text,
        "wrong": faults,
        "outcome": session.trace.outcome,
        "calls": [{"name": call.name, **call.arguments} for call in session.calls],
        "tokens": answer.tokens,
        "first_ms": first and round((first - marks[Mark.ENDPOINT]) * 1000),
    }


def _deeds(skills: Skills, before: VoiceAdjustment) -> list[str]:
    """Return the effects of a turn in the words of `JudgedText.does`. `before` is the voice before
    the turn."""
    now = skills.voice
    due = [timer.due.replace(tzinfo=None) for timer in skills.timers]
    found = [f"timer {round((one - CLOCK).total_seconds())}" for one in due]
    found += [f"only {one}" for one in found if len(found) == 1]
    found += ["louder"] * (now.gain > before.gain) + ["softer"] * (now.gain < before.gain)
    found += ["faster"] * (now.speed > before.speed) + ["slower"] * (now.speed < before.speed)
    return found


def wrong(ask: JudgedText, answer: TypedAnswer, before: str, questions: Questions) -> list[str]:
    """Return the faults of an answer, in a few words each; `before` is the previous reply."""
    said = answer.text.lower().replace("’", "'")  # noqa: RUF001
    found = [pattern for pattern in ask.all if not re.search(questions.named(pattern), said)]
    faults = [f"lacks {pattern}" for pattern in found]
    if ask.any and not any(re.search(questions.named(one), said) for one in ask.any):
        faults.append(f"lacks {' or '.join(ask.any)}")
    hits = (re.search(questions.named(pattern), said) for pattern in ask.none)
    faults += [f"says '{hit[0]}'" for hit in hits if hit]
    count = len(said.split())
    if ask.words and not ask.words[0] <= count <= ask.words[1]:
        faults.append(f"{count} words")
    if ask.does and not _has_done(ask.does, answer, before):
        faults.append(f"does not: {ask.does}")
    return faults + _unfit(answer)


def _has_done(what: str, answer: TypedAnswer, before: str) -> bool:
    match what:
        case "stops":
            return not answer.text.strip()
        case "repeats":
            return _words(answer.text) == _words(before)
        case _:
            return what in answer.done


def _words(text: str) -> list[str]:
    return [word for word in map(normalise, text.split()) if word]


def _unfit(answer: TypedAnswer) -> list[str]:
    """Return the faults that a reply can have whatever the rule is."""
    faults = list[str]()
    if answer.tokens > MOST_TOKENS:
        faults.append(f"{answer.tokens} tokens")
    if bad := [char for char in answer.text if not speakable(char)]:
        faults.append(f"cannot be spoken: {' '.join(dict.fromkeys(bad))}")
    text = answer.text.strip()
    if text and answer.cut and not _WHOLE.search(text):
        faults.append("breaks off")
    return faults


def speakable(char: str) -> bool:
    """Return whether a character can be spoken, or is punctuation or a space."""
    return char in KNOWN or char.isspace() or unicodedata.category(char) not in _UNSPEAKABLE
