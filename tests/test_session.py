"""The conversation loop on a virtual clock: every time below follows from the script alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import (
    FRAME,
    RATE,
    Script,
    ScriptedAsr,
    ScriptedLlm,
    ScriptedTts,
    ScriptedVad,
    Utterance,
)
from voiceloop.config import Config, TurnConfig
from voiceloop.devices import NullSpeaker
from voiceloop.runner import InlineRunner
from voiceloop.session import Engines, Event, Session
from voiceloop.trace import (
    Lane,
    Mark,
    endpoint_to_sound_ms,
    out_of_order,
    parts_ms,
    voice_to_voice_ms,
)
from voiceloop.types import AudioFrame, Clause, Notice, TokenBurst, ToolCall, Transcript, TurnTrace

pytestmark = pytest.mark.virtual

CONFIG = replace(Config(), turns=replace(TurnConfig(), hangover_ms=400))
REPLIES = {
    "Tell me about the sky": ("The sky is blue, ", "and that is ", "how it is. ", "Look at it."),
    "What time is it": (ToolCall(1, "c1", "get_time", {}),),
    "And the sea": ("The sea is ", "deep."),
    "Say nothing": (),
}
RESULTS = {"get_time": ("It is noon ", "now.")}


@dataclass
class ScriptedMicrophone:
    """The script's stream; while it is held its clock stops."""

    script: Script
    finished: bool = False
    held: list[str] = field(default_factory=list[str])
    stopped: bool = False

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        pcm, at = self.script.pcm(), anyio.current_time()
        for start in range(0, len(pcm), FRAME):
            at += FRAME / RATE
            while self.stopped:
                await anyio.sleep(0.02)
                at = max(at, anyio.current_time() + FRAME / RATE)
            await anyio.sleep_until(at)
            self.finished = start + FRAME >= len(pcm)
            yield AudioFrame(pcm[start : start + FRAME], RATE, start)

    def hold(self) -> None:
        self.held.append("hold")
        self.stopped = True

    def release(self) -> None:
        self.held.append("release")
        self.stopped = False


@dataclass
class Result:
    events: list[Event]
    log: list[tuple[str, object]]
    asr: ScriptedAsr
    microphone: ScriptedMicrophone

    @property
    def traces(self) -> list[TurnTrace]:
        return [event for event in self.events if isinstance(event, TurnTrace)]


async def converse(
    *utterances: Utterance,
    total_s: float = 6.0,
    tts: ScriptedTts | None = None,
    full_duplex: bool = False,
    sequential: bool = False,
    replies: dict[str, Sequence[str | ToolCall]] | None = None,
) -> Result:
    script = Script(utterances, total_s)
    llm = ScriptedLlm(REPLIES if replies is None else replies, results=RESULTS)
    asr = ScriptedAsr(script)
    microphone = ScriptedMicrophone(script)
    events: list[Event] = []
    runner = InlineRunner
    voice = tts or ScriptedTts()
    engines = Engines(ScriptedVad(), asr, runner(), llm, runner(), voice, runner())
    session = Session(
        engines,
        microphone,
        NullSpeaker(RATE),
        CONFIG,
        events.append,
        full_duplex=full_duplex,
        sequential=sequential,
        wall_clock=lambda: datetime(2026, 1, 5, 14, 5),
    )
    await session.run()
    return Result(events, llm.log, asr, microphone)


def said(events: Sequence[Event], turn: int = 1) -> str:
    return "".join(e.text for e in events if isinstance(e, TokenBurst) and e.turn == turn)


async def test_a_question_is_answered_and_the_whole_reply_is_heard() -> None:
    result = await converse(Utterance(0.5, "Tell me about the sky"))
    (trace,) = result.traces
    assert trace.outcome == "done"
    assert said(result.events) == "The sky is blue, and that is how it is. Look at it."
    assert trace.heard == "The sky is blue, and that is how it is. Look at it."
    assert not out_of_order(trace)
    assert trace.marks[Mark.SPEECH_START] == pytest.approx(0.5, abs=0.033)
    assert trace.marks[Mark.SPEECH_END] == pytest.approx(2.0, abs=0.005)
    parts = parts_ms(trace)
    assert parts is not None
    assert sum(parts.values()) == pytest.approx(voice_to_voice_ms(trace), abs=1e-3)


async def test_every_stage_overlaps_the_others() -> None:
    (trace,) = (await converse(Utterance(0.5, "Tell me about the sky"))).traces
    at = trace.marks
    assert at[Mark.PREFILL_START] < at[Mark.SPEECH_END] < at[Mark.ENDPOINT]
    # The final decode began at the first silence, so it is there before the endpoint is decided,
    assert at[Mark.TRANSCRIPT_FINAL] == at[Mark.ENDPOINT]
    # and then the first clause takes one step of the model and one of synthesis.
    assert endpoint_to_sound_ms(trace) == pytest.approx(20 + 30, abs=1)
    assert at[Mark.FIRST_SYNTHESIS] < at[Mark.REPLY_END]
    assert at[Mark.FIRST_SOUND] < at[Mark.REPLY_END]


async def test_sequential_runs_each_stage_after_the_last() -> None:
    result = await converse(Utterance(0.5, "Tell me about the sky"), sequential=True)
    (trace,) = result.traces
    at = trace.marks
    assert Mark.PREFILL_START not in at
    assert [final for _, final in result.asr.windows] == [True]
    assert at[Mark.TRANSCRIPT_FINAL] - at[Mark.ENDPOINT] == pytest.approx(0.05)
    assert at[Mark.REPLY_END] - at[Mark.TRANSCRIPT_FINAL] == pytest.approx(4 * 0.02)
    assert at[Mark.SYNTHESIS_END] <= at[Mark.FIRST_SOUND]
    overlapped = await converse(Utterance(0.5, "Tell me about the sky"))
    assert overlapped.traces[0].heard == trace.heard
    again = overlapped.traces[0].marks
    decided = [marks[Mark.ENDPOINT] - marks[Mark.SPEECH_END] for marks in (at, again)]
    assert decided[0] == pytest.approx(decided[1])


async def test_only_settled_words_are_prefilled_and_the_last_prefill_is_the_transcript() -> None:
    result = await converse(Utterance(0.5, "Tell me about the sky"))
    prefilled = [str(text) for name, text in result.log if name == "prefill"]
    assert prefilled[-1] == "Tell me about the sky"
    assert len(prefilled) > 2
    for shorter, longer in pairwise(prefilled):
        assert longer.startswith(shorter)
    committed = [e.committed_text for e in result.events if isinstance(e, Transcript)]
    for shorter, longer in pairwise(committed):
        assert longer.startswith(shorter), "a committed word was taken back"


async def test_turns_follow_one_another_and_the_recording_waits_while_a_reply_plays() -> None:
    result = await converse(
        Utterance(0.5, "Tell me about the sky"), Utterance(3.0, "And the sea"), total_s=5.0
    )
    first, second = result.traces
    assert (first.turn, second.turn) == (1, 2)
    assert second.heard == "The sea is deep."
    assert first.marks[Mark.SOUND_END] <= second.marks[Mark.SPEECH_START]
    assert result.microphone.held == ["hold", "release"] * 2


async def test_a_tool_is_run_and_its_result_is_spoken_but_never_the_call() -> None:
    result = await converse(Utterance(0.5, "What time is it"))
    (trace,) = result.traces
    assert trace.heard == "It is noon now."
    (returned,) = [text for name, text in result.log if name == "tool_result"]
    assert returned == '{"time": "2:05 PM", "day": "Monday", "date": "January 5"}'
    clauses = [event.text for event in result.events if isinstance(event, Clause)]
    assert "".join(clauses).split() == ["It", "is", "noon", "now."]


async def test_silence_is_no_turn() -> None:
    result = await converse(total_s=3.0)
    assert result.traces == []
    assert [name for name, _ in result.log] == ["close"]


async def test_noise_without_words_is_abandoned_and_asks_nothing_of_the_model() -> None:
    result = await converse(Utterance(0.5, "Hm", word_s=0.2))  # too short to be recognised
    (trace,) = result.traces
    assert trace.outcome == "abandoned"
    assert [name for name, _ in result.log] == ["close"]


async def test_an_empty_reply_ends_the_turn() -> None:
    result = await converse(Utterance(0.5, "Say nothing"), total_s=3.0)
    (trace,) = result.traces
    assert (trace.outcome, trace.heard) == ("done", "")


async def test_a_stage_that_fails_ends_its_turn_and_not_the_session() -> None:
    broken = ScriptedTts(fail=lambda clause: "Look" in clause.text)
    result = await converse(
        Utterance(0.5, "Tell me about the sky"), Utterance(3.0, "And the sea"), tts=broken
    )
    first, second = result.traces
    assert first.outcome == "failed"
    assert any(isinstance(e, Notice) and "synthesizer broke" in e.text for e in result.events)
    assert second.outcome == "done"
    assert second.heard == "The sea is deep."


async def test_speech_over_a_reply_interrupts_it_and_history_is_what_was_heard() -> None:
    long_reply = {**REPLIES, "Tell me about the sky": ("It goes on and on, ",) * 40}
    result = await converse(
        Utterance(0.5, "Tell me about the sky"),
        Utterance(4.0, "And the sea"),
        total_s=8.0,
        full_duplex=True,
        replies=long_reply,
    )
    first, second = result.traces
    assert first.outcome == "interrupted"
    spoken = said(result.events, 1).split()
    heard = first.heard.split()
    assert 0 < len(heard) < len(spoken)
    assert heard == spoken[: len(heard)]
    assert ("heard", len(heard)) in result.log
    # The reply stopped within a frame and the fade of the moment at which speech was noticed.
    noticed = 4.0 + 0.064 + 0.032
    assert first.marks[Mark.SOUND_END] <= noticed + 0.02 + 0.005 + 1e-6
    assert second.heard == "The sea is deep."


@settings(max_examples=25)
@given(pauses=st.lists(st.floats(0.05, 0.3), max_size=3), start=st.floats(0.2, 0.9))
async def test_marks_are_ordered_whatever_the_pauses(pauses: list[float], start: float) -> None:
    words = "Tell me about the sky".split()
    utterances: list[Utterance] = []
    at = start
    for index, word in enumerate(words):
        utterances.append(Utterance(at, word))
        at += 0.3 + (pauses[index] if index < len(pauses) else 0.0)
    result = await converse(*utterances, total_s=at + 1.5)
    (trace,) = result.traces
    assert trace.heard == "The sky is blue, and that is how it is. Look at it."
    assert not out_of_order(trace)
    finals = [e for e in result.events if isinstance(e, Transcript) and e.final]
    assert [final.text for final in finals] == ["Tell me about the sky"]
    speaking = [span for span in trace.spans if span.lane == Lane.SPEAKER]
    assert speaking[0].start == pytest.approx(trace.marks[Mark.FIRST_SOUND])
