"""The conversation loop on a virtual clock: every time below follows from the script alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.fakes import Script, ScriptMicrophone, Utterance
from tests.support.clock import VirtualClock
from tests.support.runner import InlineRunner, Timed
from tests.support.scripted import (
    ScriptedAsr,
    ScriptedConversation,
    ScriptedLlm,
    ScriptedTts,
    ScriptedVad,
)
from tests.traces import out_of_order
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.dialogue.state import Options
from voiceloop.engines import AsrRequest, Engines, Steps
from voiceloop.errors import EngineError
from voiceloop.languages import AUTO, language
from voiceloop.session import Session
from voiceloop.settings.config import Config, LlmConfig, TurnConfig
from voiceloop.trace.record import (
    Mark,
    endpoint_to_sound_ms,
    parts_ms,
    voice_to_voice_ms,
)
from voiceloop.turn.resources import EVERYTHING, SEQUENTIAL, STREAMING, Overlap
from voiceloop.types import (
    Clause,
    Event,
    FloorChange,
    Notice,
    TokenBurst,
    ToolCall,
    Transcript,
    TurnHeard,
    TurnTrace,
    Word,
)

pytestmark = pytest.mark.virtual

CONFIG = Config(llm=LlmConfig(skills="none"), turns=TurnConfig(endpoint="fixed", hangover_ms=400))
REPLIES = {
    "Tell me about the sky": ("The sky is blue, ", "and that is ", "how it is. ", "Look at it."),
    "What time is it": (ToolCall(1, "c1", "get_time", {}),),
    "What time is it and wake me": (
        ToolCall(1, "c1", "get_time", {}),
        ToolCall(1, "c2", "set_timer", {"minutes": 5}),
    ),
    "Wake me": (
        ToolCall(1, "c1", "", {}, problem="it is no JSON"),
        ToolCall(1, "c2", "set_timer", {"minutes": 5}),
    ),
    "And the sea": ("The sea is ", "deep."),
    "Say nothing": (),
}
RESULTS: dict[str, Sequence[str]] = {
    "get_time": ("It is noon ", "now."),
    "set_timer": ("I will ", "wake you."),
    "c3": (),
}


@dataclass
class Result:
    events: list[Event]
    log: list[tuple[str, object]]
    asr: ScriptedAsr
    microphone: ScriptMicrophone
    times: list[float]
    """When each event was shown."""

    @property
    def traces(self) -> list[TurnTrace]:
        return [event for event in self.events if isinstance(event, TurnTrace)]


async def converse(
    *utterances: Utterance,
    total_s: float = 6.0,
    tts: ScriptedTts | None = None,
    full_duplex: bool = False,
    overlap: Overlap = EVERYTHING,
    replies: dict[str, Sequence[str | ToolCall]] | None = None,
    guesses: int | Literal["auto"] = 3,
    pre_roll_ms: int = 300,
    asr: Callable[[Script], ScriptedAsr] = ScriptedAsr,
    llm: ScriptedLlm | None = None,
    watch: Callable[[Event], None] = lambda event: None,
    ready: Callable[[Session], None] = lambda session: None,
    config: Config = CONFIG,
    speaker: NullSpeaker | None = None,
    **options: Any,
) -> Result:
    script = Script(utterances, total_s)
    llm = llm or ScriptedLlm(REPLIES if replies is None else replies, results=RESULTS)
    hearing = asr(script)
    microphone = ScriptMicrophone(script)
    events: list[Event] = []
    times: list[float] = []

    def show(event: Event) -> None:
        watch(event)
        events.append(event)
        times.append(anyio.current_time())

    runner = InlineRunner
    voice = tts or ScriptedTts()
    engines = Engines(ScriptedVad(), hearing, runner(), llm, runner(), voice, runner())
    session = Session(
        engines,
        microphone,
        speaker or NullSpeaker(RATE),
        structs.replace(
            config,
            turns=structs.replace(config.turns, max_guesses=guesses, pre_roll_ms=pre_roll_ms),
        ),
        show,
        full_duplex=full_duplex,
        overlap=overlap,
        wall_clock=lambda: datetime(2026, 1, 5, 14, 5),
        **options,
    )
    ready(session)
    await session.run()
    return Result(events, llm.log, hearing, microphone, times)


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
    # The final decode and the reply began at the first silence, so at the endpoint the first clause
    # is waiting, and nothing more than that has been thought.
    assert at[Mark.PAUSE] < at[Mark.FIRST_SYNTHESIS] < at[Mark.ENDPOINT]
    assert at[Mark.TRANSCRIPT_FINAL] == at[Mark.ENDPOINT] == at[Mark.FIRST_SOUND]
    assert at[Mark.REPLY_END] == pytest.approx(at[Mark.ENDPOINT] + 3 * 0.02)


@pytest.mark.parametrize(
    ("code", "spoken"),
    [("en-gb", "twelve point five percent"), ("de", "zwölf Komma fünf Prozent"), ("", "12,5 %")],
)
async def test_a_reply_is_put_into_words_of_the_language_that_the_voice_speaks(
    code: str, spoken: str
) -> None:
    said = list[str]()

    def hear(clause: Clause) -> bool:
        said.append(clause.spoken)
        return False

    written = "12.5 %" if code == "en-gb" else "12,5 %"
    await converse(
        Utterance(0.5, "What time is it"),
        tts=ScriptedTts(speaks=code, fail=hear),
        replies={"What time is it": (written,)},
    )
    assert set(said) == {spoken}


HESITANT = (Utterance(0.5, "Tell me"), Utterance(1.4, "about the sky"))
"""A silence of 0.3 s: long enough for a guess, and shorter than the hangover."""


async def test_a_guess_that_was_wrong_is_dropped_and_the_reply_begun_anew() -> None:
    result = await converse(*HESITANT)
    (trace,) = result.traces
    begun = [entry for entry in result.log if entry[0] in ("reply", "revise")]
    assert begun == [("reply", "Tell me"), ("revise", "Tell me about the sky")]
    assert trace.counters["replies_dropped"] == 1
    assert trace.counters["wasted_tokens"] == len("I do not know.".split())
    assert trace.counters["tokens"] == len(trace.heard.split())
    assert trace.heard == said(result.events) == "".join(map(str, REPLIES["Tell me about the sky"]))
    assert not out_of_order(trace)


async def test_the_number_of_guesses_is_bounded() -> None:
    words = "Tell me about the sky".split()
    hesitant = [Utterance(0.5 + 0.6 * i, word) for i, word in enumerate(words)]
    for guesses in (0, 1, 2, 9):
        result = await converse(*hesitant, guesses=guesses)
        (trace,) = result.traces
        dropped = trace.counters.get("replies_dropped", 0)
        assert dropped == min(guesses, len(words) - 1)
        assert trace.heard == "".join(map(str, REPLIES["Tell me about the sky"]))


async def test_a_clause_that_stays_the_same_is_spoken_once() -> None:
    same = ("It is a fine day. ", "Go out.")
    for second in (same, ("It is a grey day. ", "Stay in.")):
        spoken: list[Clause] = []
        tts = ScriptedTts(fail=lambda clause, spoken=spoken: bool(spoken.append(clause)))
        replies = {"Tell me": same, "Tell me about the sky": second}
        result = await converse(*HESITANT, replies=replies, tts=tts)
        (trace,) = result.traces
        assert trace.heard == "".join(second)
        assert len(spoken) == (2 if second is same else 3)
        assert trace.counters.get("clauses_kept", 0) == (second is same)


async def test_a_tool_waits_until_the_user_has_finished() -> None:
    result = await converse(Utterance(0.5, "What time is it"))
    shown = [time for event, time in zip(result.events, result.times, strict=True)
             if isinstance(event, ToolCall)]  # fmt: skip
    assert shown == [result.traces[0].marks[Mark.ENDPOINT]] * 2  # the call, and its result
    hesitant = (Utterance(0.5, "What time is it"), Utterance(2.0, "then"))
    result = await converse(*hesitant)
    assert not [event for event in result.events if isinstance(event, ToolCall)]
    assert "tool_result" not in [name for name, _ in result.log]


async def test_voice_and_language_hold_for_what_begins_after_they_were_chosen() -> None:
    talk = [Utterance(0.5, "Tell me about the sky"), Utterance(3.5, "And the sea")]
    tts, sessions = ScriptedTts(), list[Session]()

    def change(event: Event) -> None:
        if isinstance(event, TurnTrace) and event.turn == 1:
            sessions[0].conduct(Options(voice="other"), answers=True, interruptible=True)
            sessions[0].language = language("fr")

    result = await converse(*talk, tts=tts, watch=change, ready=sessions.append)
    first, second = ("".join(map(str, REPLIES[text.text])) for text in talk)
    assert [trace.heard for trace in result.traces] == [first, second]
    assert {voice for voice, text in tts.spoken if text.strip() in first} == {"own"}
    assert {voice for voice, text in tts.spoken if text.strip() in second} == {"other"}
    change_at = result.asr.asked.index("fr")
    assert set(result.asr.asked[:change_at]) == {"en"}
    assert set(result.asr.asked[change_at:]) == {"fr"}


async def test_a_language_is_detected_once_and_holds_from_then_on() -> None:
    talk = [Utterance(0.5, "Tell me about the sky"), Utterance(3.5, "And the sea")]
    sessions = list[Session]()

    asrs = list[ScriptedAsr]()

    def hearing(script: Script) -> ScriptedAsr:
        asrs.append(ScriptedAsr(script, detected=[("en", 1.0), ("fr", 0.5), ("fr", 0.9)]))
        return asrs[0]

    def ready(session: Session) -> None:
        session.language = language(AUTO)
        sessions.append(session)

    def over(event: Event) -> None:
        if isinstance(event, TurnTrace):
            asrs[0].detected = [("en", 1.0)]  # which nobody asks for

    result = await converse(*talk, asr=hearing, ready=ready, watch=over)
    assert [trace.outcome for trace in result.traces] == ["done", "done"]
    heard = [asked for asked, _ in itertools.groupby(result.asr.asked)]
    assert heard == ["en", "fr"], "a beginning binds nobody, however sure it is"
    assert sessions[0].language.code == "fr"


async def test_what_is_said_over_a_reply_and_ignored_tells_no_language() -> None:
    talk = [Utterance(0.5, "Tell me about the sky"), Utterance(3.0, "okay")]
    sessions = list[Session]()

    def hearing(script: Script) -> ScriptedAsr:
        return ScriptedAsr(script, detected=[("en", 0.5)])

    def ready(session: Session) -> None:
        session.language = language(AUTO)
        sessions.append(session)

    result: list[ScriptedAsr] = []

    def heard(event: Event) -> None:
        if isinstance(event, FloorChange) and event.change == "paused":
            result[0].detected = [("fr", 1.0)]

    def kept(script: Script) -> ScriptedAsr:
        result.append(hearing(script))
        return result[0]

    done = await converse(*talk, asr=kept, ready=ready, watch=heard, full_duplex=True)
    changes = [event.change for event in done.events if isinstance(event, FloorChange)]
    assert changes == ["paused", "resumed"]
    assert "fr" in done.asr.asked and sessions[0].language.code == AUTO


class Tiring(ScriptedAsr):
    """Takes its time over every final decode but the first."""

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        if request.final:
            self.cost = 0.6 if any(done for _, done in self.windows) else 0.05
        return super().transcribe(request)


async def test_words_are_kept_where_the_user_goes_on_before_the_final_decode() -> None:
    # The guess after "Tell me" is dropped, and the user speaks again before the turn is decoded.
    talk = [Utterance(0.5, "Tell me"), Utterance(1.4, "about the"), Utterance(2.45, "sky")]
    result = await converse(*talk, full_duplex=True, asr=Tiring)
    first, second = result.traces
    assert first.counters["replies_dropped"] == 1
    assert (first.outcome, second.outcome) == ("abandoned", "done")
    assert second.heard == "".join(map(str, REPLIES["Tell me about the sky"]))


@pytest.mark.slow
@settings(max_examples=25)
@given(
    gaps=st.lists(st.floats(0.02, 0.7), min_size=4, max_size=4),
    guesses=st.integers(1, 4),
)
def test_guessing_changes_nothing_but_the_time(gaps: list[float], guesses: int) -> None:
    """Whatever the pauses: the same is said, shown and heard, and nothing before the endpoint."""
    utterances, at = list[Utterance](), 0.5
    for word, gap in zip("Tell me about the sky".split(), [*gaps, 0.0], strict=True):
        utterances.append(Utterance(at, word))
        at = utterances[-1].end + gap

    def run(guesses: int) -> Result:
        talk = partial(converse, *utterances, total_s=at + 4, guesses=guesses)
        return VirtualClock().run(talk)

    plain, guessed = run(0), run(guesses)
    visible = (TokenBurst, ToolCall, Clause)
    for kind in visible:
        of_kind = [[e for e in r.events if isinstance(e, kind)] for r in (plain, guessed)]
        assert of_kind[0] == of_kind[1]
    assert [t.heard for t in plain.traces] == [t.heard for t in guessed.traces]
    ends = {t.turn: t.marks[Mark.ENDPOINT] for t in guessed.traces}
    for event, time in zip(guessed.events, guessed.times, strict=True):
        if isinstance(event, visible):
            assert time >= ends[event.turn]


@pytest.mark.parametrize(
    "left_out", ["prefill", "early_reply", "carry_over", "held_audio", "all", "stages"]
)
async def test_leaving_something_out_changes_no_word_and_no_decision(left_out: str) -> None:
    without = {"all": STREAMING, "stages": SEQUENTIAL}.get(left_out) or replace(
        EVERYTHING, **{left_out: False}
    )
    said = [Utterance(0.5, "Tell me about"), Utterance(1.7, "the sky")]  # a pause, and on
    whole = await converse(*said, guesses=3)
    less = await converse(*said, guesses=3, overlap=without)
    (own,), (other,) = whole.traces, less.traces
    assert own.heard == other.heard
    waits = [trace.marks[Mark.ENDPOINT] - trace.marks[Mark.SPEECH_END] for trace in (own, other)]
    assert waits[0] == pytest.approx(waits[1])
    soonest, later = endpoint_to_sound_ms(own), endpoint_to_sound_ms(other)
    assert soonest is not None and later is not None and soonest <= later + 1e-6
    began = [name for name, _ in less.log if name in ("prefill", "reply", "revise")]
    if left_out in ("prefill", "all", "stages"):
        assert "prefill" not in began
    if left_out in ("early_reply", "all", "stages"):
        assert began.count("reply") == 1 and Mark.FIRST_BURST in other.marks
        assert other.marks[Mark.FIRST_BURST] > other.marks[Mark.ENDPOINT]
    if left_out == "carry_over":
        assert "revise" not in began and began.count("reply") == 2
    if left_out == "held_audio":
        assert other.marks[Mark.FIRST_BURST] < other.marks[Mark.ENDPOINT]
        assert other.marks[Mark.FIRST_SYNTHESIS] > other.marks[Mark.ENDPOINT]


async def test_only_settled_words_are_prefilled_and_the_last_prefill_is_the_transcript() -> None:
    result = await converse(Utterance(0.5, "Tell me about the sky"))
    prefilled = [str(text) for name, text in result.log if name in ("prefill", "reply")]
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


AHEAD_S = 0.01
"""A step of what is begun ahead."""


async def test_replies_are_begun_ahead_while_the_user_talks_and_while_the_reply_plays() -> None:
    llm = ScriptedLlm(REPLIES, ahead_cost=AHEAD_S)
    result = await converse(
        Utterance(0.5, "Tell me about the sky"), Utterance(3.0, "And the sea"), llm=llm
    )
    looks = [text for kind, text in result.log if kind == "ahead"]
    assert looks.count("") == 2  # after each of the replies
    assert any(text for text in looks if "And the sea".startswith(str(text)) and text)
    assert not any(text for text in looks if "Tell me about the sky".startswith(str(text)) and text)
    assert all(trace.counters["tokens_ahead"] > 0 for trace in result.traces)
    assert [trace.outcome for trace in result.traces] == ["done", "done"]


@pytest.mark.parametrize("full_duplex", [False, True])
async def test_what_is_begun_ahead_holds_nothing_up(full_duplex: bool) -> None:
    """Everything else comes as it would without, but for the step that is running."""
    spoken = (
        Utterance(0.5, "Tell me about the sky"),
        Utterance(3.0, "And the sea"),
        Utterance(6.0, "Tell me about the sky"),
    )
    plain, ahead = [
        await converse(
            *spoken,
            total_s=9.0,
            full_duplex=full_duplex,
            llm=ScriptedLlm(REPLIES, ahead_cost=cost),
        )
        for cost in (None, AHEAD_S)
    ]
    assert "tokens_ahead" not in plain.traces[0].counters
    for before, after in zip(plain.traces, ahead.traces, strict=True):
        assert (before.heard, before.outcome) == (after.heard, after.outcome)
        assert before.marks.keys() == after.marks.keys()
        began = [result.traces[0].marks[Mark.SPEECH_START] for result in (plain, ahead)]
        late = [after.marks[name] - before.marks[name] for name in before.marks]
        late = [seconds - (began[1] - began[0]) for seconds in late]
        assert max(late) <= 3 * AHEAD_S  # each step of another model may meet one


@dataclass
class SlowToOpen(ScriptedLlm):
    """A model to which a step of what stands before the first turn takes 0.2 s, of which there are
    four."""

    fails: bool = False

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> ScriptedConversation:
        opening = self

        class Opened(ScriptedConversation):
            def prefill(self, text: str, turn: int) -> Steps[None]:
                if text:
                    yield from super().prefill(text, turn)
                    return
                for step in range(4):
                    opening.log.append(("opening", step))
                    if opening.fails and step == 2:
                        raise EngineError("there is no memory", "take less")
                    yield Timed(None, 0.2)  # type: ignore[misc]

        return Opened(self)


async def test_what_stands_before_the_first_turn_is_read_before_anybody_speaks() -> None:
    result = await converse(Utterance(1.0, "And the sea"), llm=SlowToOpen(REPLIES))
    names = [name for name, _ in result.log]
    assert names[:4] == ["opening"] * 4
    assert "opening" not in names[4:]
    assert result.traces[0].heard == "The sea is deep."


async def test_first_words_wait_for_what_stands_before_them_and_nothing_is_read_twice() -> None:
    late = await converse(Utterance(0.0, "And the sea"), llm=SlowToOpen(REPLIES))
    assert [name for name, _ in late.log].count("opening") == 4
    assert late.log[4] == ("prefill", "And")


async def test_an_opening_that_is_another_by_now_is_not_read_on() -> None:
    llm = SlowToOpen(REPLIES)

    def ready(session: Session) -> None:
        async def rewrite() -> None:
            for text in ("second", "third"):
                await anyio.sleep(0.3)
                session.rewrite(lambda text=text: llm.log.append(("history", text)))

        running.start_soon(rewrite)

    async with anyio.create_task_group() as running:
        await converse(Utterance(2.5, "And the sea"), llm=llm, ready=ready)
    opened = llm.log[: llm.log.index(("prefill", "And"))]
    histories = [value for name, value in opened if name == "history"]
    assert histories == ["second", "third"]
    assert opened[-4:] == [("opening", step) for step in range(4)]
    assert len(opened) < 2 + 3 * 4, "neither of the others was read to its end"


async def test_where_the_opening_cannot_be_read_the_first_turn_is_answered_nevertheless() -> None:
    result = await converse(Utterance(1.0, "And the sea"), llm=SlowToOpen(REPLIES, fails=True))
    assert ("opening", 3) not in result.log
    assert result.traces[0].heard == "The sea is deep."


async def test_all_tools_of_a_reply_run_in_order_before_it_goes_on() -> None:
    result = await converse(Utterance(0.5, "What time is it and wake me"))
    (trace,) = result.traces
    assert trace.heard == "I will wake you."
    clauses = [event.text for event in result.events if isinstance(event, Clause)]
    assert "".join(clauses).split() == trace.heard.split(), "no call is spoken"
    returned = [text for name, text in result.log if name == "tool_result"]
    clock = '{"time": "2:05 PM", "day": "Monday", "date": "January 5"}'
    assert returned == [clock, '{"timer": "5 minutes"}']
    assert [name for name, _ in result.log].count("reply closed") == 2  # the calls, and the rest


async def test_of_a_call_that_cannot_be_read_the_model_and_the_user_are_told() -> None:
    result = await converse(Utterance(0.5, "Wake me"))
    (trace,) = result.traces
    assert trace.heard == "I will wake you."
    returned = [text for name, text in result.log if name == "tool_result"]
    unread = '{"error": "the call cannot be read: it is no JSON"}'
    assert returned == [unread, '{"timer": "5 minutes"}']
    calls = [event for event in result.events if isinstance(event, ToolCall)]
    assert [(call.name, bool(call.result)) for call in calls] == [
        ("set_timer", False),
        ("set_timer", True),
    ]
    notices = [event.text for event in result.events if isinstance(event, Notice)]
    assert notices[0] == "the model wrote a call that cannot be read: it is no JSON"


@pytest.mark.parametrize("pre_roll_ms", [0, 300, 3000, 60_000])
async def test_a_turn_begins_with_all_of_its_pre_roll_that_there_is(pre_roll_ms: int) -> None:
    utterance = Utterance(5.5, "Tell me about the sky")
    result = await converse(utterance, total_s=11.0, pre_roll_ms=pre_roll_ms)
    begun = next(event for event in result.events if isinstance(event, TurnHeard))
    assert begun.sample / 16_000 == pytest.approx(max(0, 5.5 - pre_roll_ms / 1000), abs=0.033)
    assert result.traces[0].heard == "".join(map(str, REPLIES["Tell me about the sky"]))


async def test_silence_is_no_turn() -> None:
    result = await converse(total_s=3.0)
    assert result.traces == []
    assert result.log == [("prefill", ""), ("close", None)]


async def test_noise_without_words_is_abandoned_and_asks_nothing_of_the_model() -> None:
    result = await converse(Utterance(0.5, "Hm", word_s=0.2))  # too short to be recognised
    (trace,) = result.traces
    assert trace.outcome == "abandoned"
    assert result.log == [("prefill", ""), ("close", None)]


NOTHING = "I have nothing to say to that."


@pytest.mark.parametrize("reply", [(), ("😀 👍",), ("---",), ("\n", "\n")])
async def test_a_reply_without_speech_is_told_as_such(reply: Sequence[str]) -> None:
    result = await converse(
        Utterance(0.5, "Say nothing"),
        Utterance(4.0, "And the sea"),
        total_s=7.0,
        replies={**REPLIES, "Say nothing": reply},
    )
    first, second = result.traces
    assert (first.outcome, first.heard) == ("silent", NOTHING)
    assert Mark.FIRST_SOUND in first.marks
    assert said(result.events).strip().endswith(NOTHING)
    assert ("heard", 0) in result.log, "nothing of it stays in the history"
    assert second.outcome == "done"


async def test_the_sentence_is_in_the_language_of_the_voice_and_missing_where_none_is_known() -> (
    None
):
    for code, sentence in (("de", "Dazu habe ich nichts zu sagen."), ("xx", "")):
        result = await converse(Utterance(0.5, "Say nothing"), tts=ScriptedTts(speaks=code))
        (trace,) = result.traces
        assert (trace.outcome, trace.heard) == ("silent", sentence)


async def test_a_written_reply_without_text_is_silent_and_stays_without() -> None:
    def written(session: Session) -> None:
        session.conduct(Options(spoken=False), answers=True, interruptible=True)

    for reply, outcome in (((), "silent"), (("😀",), "done")):
        replies: dict[str, Sequence[str | ToolCall]] = {"Say nothing": reply}
        result = await converse(Utterance(0.5, "Say nothing"), ready=written, replies=replies)
        assert result.traces[0].outcome == outcome
        assert said(result.events) == "".join(reply)


async def test_a_tool_that_ran_stays_in_the_history_of_a_reply_without_speech() -> None:
    call = ToolCall(1, "c3", "set_timer", {"minutes": 5})
    result = await converse(Utterance(0.5, "Wake me"), replies={"Wake me": (call,)})
    assert result.traces[0].outcome == "silent"
    assert not [entry for entry in result.log if entry[0] == "heard"]


@pytest.mark.parametrize("where", ["sky", "Look"])  # before the endpoint, and after it
async def test_a_stage_that_fails_ends_its_turn_and_not_the_session(where: str) -> None:
    broken = ScriptedTts(fail=lambda clause: where in clause.text)
    result = await converse(
        Utterance(0.5, "Tell me about the sky"), Utterance(3.0, "And the sea"), tts=broken
    )
    first, second = result.traces
    assert first.outcome == "failed"
    assert any(isinstance(e, Notice) and "synthesizer broke" in e.text for e in result.events)
    assert second.outcome == "done"
    assert second.heard == "The sea is deep."


class Unplugged(ScriptedLlm):
    """Fails after so many bursts of its first reply."""

    def __init__(self, bursts: int) -> None:
        super().__init__(REPLIES, results=RESULTS)
        self.left = bursts

    def conversation(self, *, system: str = "", seed: int | None = None) -> ScriptedConversation:
        return UnpluggedConversation(self)


class UnpluggedConversation(ScriptedConversation):
    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        model = self._model
        assert isinstance(model, Unplugged)
        for item in super().reply(text, turn):
            if turn == 1 and not model.left:
                raise EngineError("the server is gone", "start it again")
            model.left -= 1
            yield item


@pytest.mark.parametrize("overlap", [EVERYTHING, STREAMING, SEQUENTIAL])
@pytest.mark.parametrize("bursts", [0, 2, 3])
async def test_a_model_that_fails_is_apologised_for_after_what_it_has_said(
    bursts: int, overlap: Overlap
) -> None:
    result = await converse(
        Utterance(0.5, "Tell me about the sky"),
        Utterance(7.0, "And the sea"),
        total_s=11.0,
        llm=Unplugged(bursts),
        overlap=overlap,
    )
    first, second = result.traces
    assert first.outcome == "failed"
    notices = [event.text for event in result.events if isinstance(event, Notice)]
    assert notices == ["the reply failed: the server is gone"]
    sounded = [e.text for e in result.events if isinstance(e, Clause) and e.turn == 1]
    assert sounded[-1].strip() == "Sorry, I can't answer right now."
    thought = "".join(map(str, REPLIES["Tell me about the sky"][:bursts]))
    assert "".join(sounded[:-1]).strip() == thought.strip()
    assert first.heard == f"{thought} Sorry, I can't answer right now.".strip().replace("  ", " ")
    written = "".join(e.text for e in result.events if isinstance(e, TokenBurst) and e.turn == 1)
    assert written.split() == first.heard.split()
    assert ("heard", len(thought.split())) in result.log  # the model never learns of the apology
    assert second.outcome == "done" and second.heard == "The sea is deep."


async def test_a_guess_that_fails_is_nobodys_business() -> None:
    result = await converse(*HESITANT, llm=Unplugged(0))
    (trace,) = result.traces
    assert trace.outcome == "done" and trace.counters["replies_dropped"] == 1
    assert not [event for event in result.events if isinstance(event, Notice)]


@pytest.mark.parametrize("metered", [False, True])
async def test_nothing_is_guessed_where_tokens_may_cost_something(metered: bool) -> None:
    for guesses in ("auto", 3):
        llm = ScriptedLlm(REPLIES, metered=metered)
        result = await converse(*HESITANT, llm=llm, guesses=guesses)
        begun = [entry for entry in result.log if entry[0] in ("reply", "revise")]
        wanted = [("reply", "Tell me"), ("revise", "Tell me about the sky")]
        alone = [("reply", "Tell me about the sky")]
        assert begun == (alone if metered and guesses == "auto" else wanted)


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
