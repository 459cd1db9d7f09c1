"""Adversarial replies, from their tokens to what a synthesizer is given, in any cuts."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.llm.conftest import build_tokenizer
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from tests.support.user import FRAME, Lexicon
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.engines import Engines
from voiceloop.languages import language
from voiceloop.llm.text.output import CallOutput, Output, SpeechOutput
from voiceloop.llm.text.parts import MARKS, Parts
from voiceloop.session import Session
from voiceloop.settings.config import Config
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.types import AudioFrame, Clause, Event, TokenBurst, ToolCall, TurnTrace

pytestmark = pytest.mark.models  # the tokenizer is a real one
DATA = Path(__file__).parents[2] / "data" / "replies.toml"
UNSAYABLE = re.compile(r"[^\w ',.;:!?-]|[\d_]")
FRAMES = (
    ("", "", "", ""),
    ("Right, I see.\n\n", "\n\nThat is all.", "Right I see", "That is all"),
    ("<think>Is it {1}?\n- `no` <tool_call></think>\n", "", "", ""),
)
"""What is written around a reply, and what of that is said."""


@dataclass(frozen=True)
class Case:
    about: str
    written: str
    said: str
    calls: tuple[str, ...]
    thinking: bool

    @property
    def words(self) -> list[str]:
        return self.said.split()


def cases() -> Iterator[Case]:
    for reply in tomllib.loads(DATA.read_text(encoding="utf-8"))["reply"]:
        for number, (before, after, said_before, said_after) in enumerate(FRAMES):
            thinking = reply.get("thinking", False)
            if number and (reply.get("alone") or thinking):
                continue
            if reply.get("last"):
                after = said_after = ""
            yield Case(
                f"{reply['about']} {number}",
                before + reply["written"] + after,
                f"{said_before} {reply.get('said', '')} {said_after}".strip(),
                tuple(reply.get("calls", ())),
                thinking,
            )


CASES = list(cases())


def test_there_are_hundreds_of_replies() -> None:
    assert len(CASES) >= 400


@pytest.fixture(scope="module")
def tokenizers(workshop: Any) -> dict[str, Any]:
    """One to which all marks are text, and one to which they are special tokens."""
    special = build_tokenizer()
    special.add_special_tokens({"additional_special_tokens": sorted(MARKS)})
    return {"text": workshop.tokenizer, "special": special}


def tokens(tokenizer: Any, text: str, seed: int | None) -> list[int]:
    """Ids of `text`: as it is tokenised, or cut into pieces that are tokenised by themselves."""
    if seed is None:
        return tokenizer.encode(text, add_special_tokens=False)
    chance, at, ids = random.Random(seed), 0, list[int]()
    while at < len(text):
        size = chance.choice((1, 1, 2, 3, 7)) if seed else 1
        ids += tokenizer.encode(text[at : at + size], add_special_tokens=False)
        at += size
    return ids


def given_out(tokenizer: Any, case: Case, seed: int | None) -> list[SpeechOutput | CallOutput]:
    """What comes of a reply whose tokens come in bursts."""
    chance = random.Random(seed)
    output = Output(tokenizer, thinking=case.thinking)
    ids, found = tokens(tokenizer, case.written, seed), list[SpeechOutput | CallOutput]()
    while ids:
        size = 1 if seed is None else chance.randint(1, 6)
        burst, ids = ids[:size], ids[size:]
        found += output.push(burst)
    return found + output.finish()


def synthesised(items: Sequence[SpeechOutput | CallOutput], code: str = "en") -> list[Clause]:
    """The clauses that a synthesizer is given."""
    cutter, tts, clauses = ClauseCutter(1, language(code)), ScriptedTts(), list[Clause]()
    for item in items:
        if isinstance(item, SpeechOutput):
            clauses += cutter.feed(TokenBurst(1, item.ids, item.text, ends=item.ends))
    for clause in (clauses := clauses + cutter.flush()):
        assert [chunk for chunk in tts.synthesize(clause)]
    return clauses


def words(clauses: Sequence[Clause]) -> list[str]:
    return [word.strip(",.;:!?") for clause in clauses for word in clause.spoken.split()]


def called(items: Sequence[SpeechOutput | CallOutput]) -> list[str]:
    return [
        "!" if item.problem else f"{item.name} {json.dumps(dict(item.arguments))}"
        for item in items
        if isinstance(item, CallOutput)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_what_can_be_said_is_said_and_nothing_else(tokenizers: dict[str, Any], case: Case) -> None:
    for kind, tokenizer in tokenizers.items():
        for seed in (None, 0, 1, 2):
            items = given_out(tokenizer, case, seed)
            clauses = synthesised(items)
            for clause in clauses:
                assert not UNSAYABLE.search(clause.spoken), (kind, seed, clause.spoken)
                assert [clause.spoken[s.start : s.end] for s in clause.spans] == (
                    clause.spoken.split()
                )
            assert words(clauses) == case.words, (kind, seed)
            assert called(items) == list(case.calls), (kind, seed)


@pytest.mark.parametrize("code", ["de", "es", "xx"])
def test_in_no_language_anything_else_reaches_the_synthesizer(
    tokenizers: dict[str, Any], code: str
) -> None:
    known = code != "xx"  # of others signs and digits are left to the synthesizer
    for case in CASES:
        for clause in synthesised(given_out(tokenizers["text"], case, None), code):
            never = UNSAYABLE if known else re.compile(r"[{}\[\]|`\\\"]|<\w|://|tool_call|think")
            assert not never.search(clause.spoken), clause.spoken


@example(["{", '"', "</function>"])
@example(["{", '"', "</function>", '"', "}", "yes"])
@given(st.lists(st.sampled_from([*sorted(MARKS), *"{}[]\"':; ", "name", "args", "yes", "\n"])))
def test_parts_are_the_text_and_do_not_depend_on_the_cuts(pieces: list[str]) -> None:
    text = "".join(pieces)
    whole, by_one = Parts(), Parts()
    parts = whole.push(text) + whole.finish()
    single = [part for char in text for part in by_one.push(char)] + by_one.finish()
    assert "".join(part.text for part in parts) == text

    def flat(parts: Sequence[Any]) -> list[object]:
        found = list[object]()
        for part in parts:
            found += [*part.calls] or [*(part.text if part.spoken else "")]
        return found

    assert flat(parts) == flat(single)
    spoken = "".join(part.text for part in parts if part.spoken)
    assert not any(mark in spoken for mark in MARKS)


class _Silence:
    """A microphone that hears nothing until it has heard enough."""

    finished = False

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        for start in range(0, 4 * RATE, FRAME):
            await anyio.sleep(FRAME / RATE)
            self.finished = start + FRAME >= 4 * RATE
            yield AudioFrame(np.zeros(FRAME, np.float32), RATE, start)

    def hold(self) -> None: ...

    def release(self) -> None: ...


SILENT = [case for case in CASES if not case.said and not case.calls]


@pytest.mark.anyio
async def test_of_a_reply_without_speech_the_user_is_told(tokenizers: dict[str, Any]) -> None:
    assert len(SILENT) >= 20
    for case in SILENT:
        items = given_out(tokenizers["text"], case, None)
        bursts: list[str | ToolCall] = [
            i.text for i in items if isinstance(i, SpeechOutput) and i.text
        ]
        events, tts = list[Event](), ScriptedTts()
        runner = InlineRunner
        llm = ScriptedLlm({"Hello": bursts})
        engines = Engines(
            ScriptedVad(), ScriptedAsr(Lexicon()), runner(), llm, runner(), tts, runner()
        )
        session = Session(engines, _Silence(), NullSpeaker(RATE), Config(), events.append)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.run)
            await anyio.sleep(0.1)
            session.write("Hello")
        (trace,) = [event for event in events if isinstance(event, TurnTrace)]
        assert (trace.outcome, trace.heard) == ("silent", "I have nothing to say to that."), case
        assert tts.spoken[-1][1] == "I have nothing to say to that."
        assert ("heard", 0) in llm.log
