"""Asks ninety everyday things, judges the answers by rules, and keeps the readers' grades of them.

    python -m lab.everyday.run --preset mini --out lab/everyday/answers-mini.json

Each talk has a session of its own, in which everything is typed. It prints how many answers are
right, and those that are not with their faults. An answer keeps its grades
(`lab/everyday/grade.py`) where it, and what was said before it, are still the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio

from lab.everyday.grades import kept, summary
from lab.everyday.judge import JudgedText, Questions, TypedAnswer, TypedTalk, questions, wrong
from lab.typed import CLOCK, TypedSession, hold_all, save, typing, with_espeak
from voiceloop.engines import Engines
from voiceloop.errors import VoiceloopError
from voiceloop.settings.config import Config
from voiceloop.settings.flags import Command, parse, written
from voiceloop.skills.known import VoiceAdjustment
from voiceloop.status import engine_names
from voiceloop.trace.record import Mark
from voiceloop.turn.skills import Skills

ENDED_S = 1.0
"""Seconds after the last reply within which a session that ends by itself must have ended."""


class Everyday(Command, frozen=True, kw_only=True):
    """Ask the everyday questions, and judge the answers."""

    out: Annotated[Path, written("A.json")] = Path("answers.json")
    """The file of the answers, with their faults and grades."""


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


def faulty(records: Sequence[Any]) -> list[str]:
    """Return lines that show every wrong answer with its faults."""
    lines = list[str]()
    for record in records:
        if record["wrong"]:
            why = "; ".join(record["wrong"])
            lines += ["", f"{record['kind']}: {record['say']}", f"  {record['reply']}", f"  {why}"]
    return lines


def main(argv: Sequence[str]) -> int:
    """Run the command line. Return the exit status."""
    command = parse({"run": Everyday}, ["run", *argv])
    assert isinstance(command, Everyday), "its help is above"
    asked = questions()
    records = hold_all(asked.talk, partial(_hold, asked), command)
    if command.out.exists():
        records = kept(records, json.loads(command.out.read_text(encoding="utf-8"))["answers"])
    print(*faulty(records), "", *summary(records), sep="\n")
    save(command.out, {"running": engine_names(with_espeak(command)), "answers": records})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except VoiceloopError as error:
        sys.exit(f"{error.message}\n{error.hint}")
