"""Asks sessions the everyday questions, and judges their answers.

    python -m lab.everyday.run --preset tiny --out lab/everyday/answers-tiny.json

Each talk has a session of its own, in which everything is typed. The clock is fixed at the time
that `questions.toml` gives. espeak speaks unless a flag names another engine, since the voice
changes no answer. Any setting may be given as a flag.

The answers in the file keep the grades of readers (`lab/everyday/grade.py`) where the answer, and
what was said before it, are still the same.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
from msgspec.structs import replace

from lab.everyday.grades import kept, summary
from lab.everyday.rules import Answer, Ask, Questions, Talk, read, wrong
from lab.typed import CLOCK, TypedSession, hold_all, save, typing
from voiceloop.config import Config
from voiceloop.engines import Engines
from voiceloop.errors import VoiceloopError
from voiceloop.flags import Command, parse, written
from voiceloop.skills.known import VoiceAdjustment
from voiceloop.status import engine_names
from voiceloop.trace.record import Mark
from voiceloop.turn.skills import Skills

QUESTIONS = Path(__file__).with_name("questions.toml")
ENDED_S = 1.0
"""Seconds after the last reply within which a session that ends by itself must have ended."""


class Everyday(Command, frozen=True, kw_only=True):
    """Ask the everyday questions, and judge the answers."""

    out: Annotated[Path | None, written("A.json")] = None
    """Write all answers with their faults."""
    kinds: tuple[str, ...] = ()
    """Only talks of these kinds."""


def deeds(skills: Skills, before: VoiceAdjustment) -> list[str]:
    """Return the effects of a turn in the words of `Ask.does`; `before` is the voice before the
    turn."""
    now = skills.voice
    due = [timer.due.replace(tzinfo=None) for timer in skills.timers]
    found = [f"timer {round((one - CLOCK).total_seconds())}" for one in due]
    found += [f"only {one}" for one in found if len(found) == 1]
    found += ["louder"] * (now.gain > before.gain) + ["softer"] * (now.gain < before.gain)
    found += ["faster"] * (now.speed > before.speed) + ["slower"] * (now.speed < before.speed)
    return found


async def hold(questions: Questions, talk: Talk, engines: Engines, config: Config) -> list[Any]:
    """Hold one talk. Return the records of its turns that have a rule."""
    skills, records, before = Skills(paced=engines.tts.paces), list[Any](), list[str]()
    async with typing(engines, config, skills) as session:
        for ask in talk.turns:
            voice = skills.voice
            await session.say(ask.say)
            if ask.judged:
                answer = await _answer(ask, session, config.llm.max_new_tokens)
                answer = answer._replace(done=[*answer.done, *deeds(skills, voice)])
                faults = wrong(ask, answer, before[-1] if before else "", questions)
                records.append(_record(talk.kind, ask, answer, session, before, faults))
            before = [*before, ask.say, session.text]
    return records


async def _answer(ask: Ask, session: TypedSession, most: int) -> Answer:
    """Return the answer of the turn that is over. A reply has at most `most` tokens."""
    done, counters = list[str](), session.trace.counters
    if ask.does == "ends":
        with anyio.move_on_after(ENDED_S):
            await session.ended.wait()
            done.append("ends")
    tokens = int(counters.get("tokens", 0))
    cut = tokens >= most or bool(counters.get("too_long"))
    return Answer(session.text, tokens, cut, done)


def _record(
    kind: str,
    ask: Ask,
    answer: Answer,
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


def table(records: Sequence[Any]) -> list[str]:
    """Return lines that count the right answers of each kind, and that show every wrong one."""
    judged = Counter(record["kind"] for record in records)
    right = Counter(record["kind"] for record in records if not record["wrong"])
    lines = [f"{kind:<12} {right[kind]:>3} of {count}" for kind, count in judged.items()]
    for record in records:
        if record["wrong"]:
            why = "; ".join(record["wrong"])
            lines += ["", f"{record['kind']}: {record['say']}", f"  {record['reply']}", f"  {why}"]
    return lines


def main(argv: Sequence[str]) -> int:
    """Run the command line. Return the exit status."""
    command = parse({"run": Everyday}, ["run", *argv])
    assert isinstance(command, Everyday), "its help is above"
    questions = read(tomllib.loads(QUESTIONS.read_text(encoding="utf-8")))
    if command.kinds:
        chosen = tuple(talk for talk in questions.talk if talk.kind in command.kinds)
        questions = replace(questions, talk=chosen)
    records = hold_all(questions.talk, partial(hold, questions), command)
    if command.out and command.out.exists():
        earlier = json.loads(command.out.read_text(encoding="utf-8"))["answers"]
        records = kept(records, earlier)
    print(*table(records), "", *summary(records), sep="\n")
    if command.out:
        save(command.out, {"running": engine_names(command.settings), "answers": records})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except VoiceloopError as error:
        sys.exit(f"{error.message}\n{error.hint}")
