"""Conversations in a program on a virtual clock: what each call does, and how they end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from tests.fakes import Script, ScriptMicrophone, Utterance
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.api.asking import question
from voiceloop.api.loop import Loop, running
from voiceloop.api.talk import MOST, Talk, TalkEvents
from voiceloop.audio.devices import NullSpeaker, PlayedAudio
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.conversations.store import VARIABLE
from voiceloop.engines import AsrRequest, Engines
from voiceloop.errors import AudioError, ConfigError, VoiceloopError
from voiceloop.settings.config import Config, LlmConfig, TurnConfig
from voiceloop.types import AudioFrame, Clause, Notice, Pcm, TokenBurst, Transcript, TurnHeard, Word
from voiceloop.view.transcript import TurnOver

pytestmark = pytest.mark.virtual

SKY = "Tell me about the sky"
SKY_REPLY = "The sky is blue, and that is how it is. Look at it."
REPLIES = {
    SKY: ("The sky is blue, ", "and that is ", "how it is. ", "Look at it."),
    "And the sea": ("The sea is ", "deep."),
}
SETTINGS = Config(
    llm=LlmConfig(skills="none"), turns=TurnConfig(endpoint="fixed", hangover_ms=400, max_turn_s=9)
)


def says(*utterances: Utterance, total_s: float = 6.0) -> Script:
    return Script(utterances, total_s)


SILENCE = says(total_s=6.0)


@asynccontextmanager
async def opened(
    script: Script = SILENCE, asr: type[ScriptedAsr] = ScriptedAsr, **options: Any
) -> AsyncGenerator[tuple[Loop, ScriptedLlm]]:
    """A loop whose models are scripted."""
    llm, run = ScriptedLlm(REPLIES, **options), InlineRunner
    engines = Engines(
        *(ScriptedVad(), asr(script), run(), llm, run(), ScriptedTts(), run()),
        new_vad=ScriptedVad,
    )
    async with running(engines, SETTINGS) as loop:
        yield loop, llm


async def drained(talk: Talk) -> list[Any]:
    return [event async for event in talk]


def overs(events: list[Any]) -> list[TurnOver]:
    return [event for event in events if isinstance(event, TurnOver)]


async def test_a_turn_is_heard_answered_and_over() -> None:
    script = says(Utterance(0.5, SKY))
    async with opened(script) as (loop, llm), loop.talk(ScriptMicrophone(script)) as talk:
        events = await drained(talk)
        (over,) = overs(events)
        assert (over.said, over.reply, over.heard) == (SKY, SKY_REPLY, SKY_REPLY)
        assert over.outcome == "done"
        assert over.voice_to_voice_ms == pytest.approx(400, abs=40)
        assert over.trace.turn == over.turn == 1
        assert events[-1] is over
        kinds = [type(event) for event in events]
        order = [TurnHeard, Transcript, TokenBurst, Clause, TurnOver]
        assert sorted(order, key=kinds.index) == order
        assert await drained(talk) == []  # and it stays over
    assert llm.log[-1] == ("close", None)


async def test_a_speaker_of_the_program_plays_the_reply() -> None:
    script, played = says(Utterance(0.5, SKY)), list[Pcm]()
    speaker = PlayedAudio(RATE, lambda place, pcm: played.append(pcm))
    async with opened(script) as (loop, _), loop.talk(ScriptMicrophone(script), speaker) as talk:
        await drained(talk)
    speaker.finish()
    words = len(SKY_REPLY.split())
    assert len(np.concatenate(played)) == words * ScriptedTts().word_samples


async def test_a_text_is_said_and_another_is_answered() -> None:
    async with opened() as (loop, llm), loop.talk(ScriptMicrophone(SILENCE)) as talk:
        said, written = talk.say("Dinner is ready."), talk.write("And the sea")
        first, second = overs(await drained(talk))
    assert (first.turn, first.said, first.heard) == (said, "", "Dinner is ready.")
    assert (second.turn, second.said, second.heard) == (
        *(written, "And the sea", "The sea is deep."),
    )
    assert ("recite", ("", "Dinner is ready.")) in llm.log


async def test_a_reply_is_cancelled() -> None:
    async with opened() as (loop, _), loop.talk(ScriptMicrophone(SILENCE)) as talk:
        assert not talk.cancel()
        talk.write(SKY)
        async for event in talk:
            if isinstance(event, Clause):
                await anyio.sleep(0.25)
                assert talk.cancel()
                break
        (over,) = overs(await drained(talk))
    assert over.outcome == "interrupted"
    assert over.heard and SKY_REPLY.startswith(over.heard) and over.heard != SKY_REPLY


async def test_muted_it_hears_nothing() -> None:
    script = says(Utterance(0.5, SKY), Utterance(6.0, "And the sea"), total_s=9.0)
    async with opened(script) as (loop, _), loop.talk(ScriptMicrophone(script)) as talk:
        talk.mute()
        await anyio.sleep(5)
        talk.unmute()
        (over,) = overs(await drained(talk))
    assert over.said == "And the sea"


async def test_a_conversation_with_a_name_goes_on_where_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kept" / "conversations.sqlite3"))
    async with opened() as (loop, llm):
        for number in range(2):
            async with loop.talk(ScriptMicrophone(SILENCE), conversation="anna") as talk:
                if not number:
                    talk.write(SKY)
                await drained(talk)
    histories: list[Any] = [about for kind, about in llm.log if kind == "rewrite"]
    assert [past.said for past in histories[-1][1]] == [SKY]


async def test_several_conversations_share_the_models() -> None:
    script = says(Utterance(0.5, SKY))
    found = dict[int, list[TurnOver]]()
    async with opened(script) as (loop, llm):

        async def hold(number: int) -> None:
            async with loop.talk(ScriptMicrophone(script)) as talk:
                found[number] = overs(await drained(talk))

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(hold, number)
    assert [over.heard for one in found.values() for over in one] == [SKY_REPLY] * 3
    assert llm.log.count(("close", None)) == 3


# ---- how it ends


async def test_leaving_in_the_middle_of_a_reply_ends_it_and_frees_the_model() -> None:
    async with opened() as (loop, llm):
        async with loop.talk(ScriptMicrophone(SILENCE)) as talk:
            talk.write(SKY)
            async for event in talk:
                if isinstance(event, Clause):
                    break
        assert llm.log[-1] == ("close", None)
        assert overs(await drained(talk)) == []
        async with loop.talk(ScriptMicrophone(SILENCE)) as other:  # the models are free
            other.write("And the sea")
            (over,) = overs(await drained(other))
            assert over.heard == "The sea is deep."


CALLS: dict[str, Callable[[Talk], object]] = {
    "say": lambda talk: talk.say("Hello."),
    "write": lambda talk: talk.write("Hello."),
    "cancel": lambda talk: talk.cancel(),
    "mute": lambda talk: talk.mute(),
    "unmute": lambda talk: talk.unmute(),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_conversation_that_is_over_takes_no_calls(call: str) -> None:
    async with opened() as (loop, _):
        async with loop.talk(ScriptMicrophone(SILENCE)) as talk:
            talk.end()
            with pytest.raises(VoiceloopError, match="over"):
                CALLS[call](talk)
            assert await drained(talk) == []
        with pytest.raises(VoiceloopError, match="over"):
            CALLS[call](talk)


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_text_is_refused(text: str) -> None:
    async with opened() as (loop, _), loop.talk(ScriptMicrophone(SILENCE)) as talk:
        for call in (talk.say, talk.write):
            with pytest.raises(VoiceloopError, match="empty"):
                call(text)


class Unrelated(Exception):
    """An error of the program's own."""


@pytest.mark.parametrize("raised", [Unrelated(), SystemExit(3), StopAsyncIteration()])
async def test_an_error_of_the_program_leaves_as_it_is(raised: BaseException) -> None:
    kind = RuntimeError if isinstance(raised, StopAsyncIteration) else type(raised)
    with pytest.raises((type(raised), kind)) as caught:
        async with opened() as (loop, _), loop.talk(ScriptMicrophone(SILENCE)) as talk:
            talk.write(SKY)
            raise raised
    assert caught.value is raised
    with pytest.raises(VoiceloopError):
        talk.cancel()


async def test_a_cancelled_program_is_cancelled() -> None:
    with anyio.move_on_after(1.0) as scope:
        async with opened() as (loop, llm), loop.talk(ScriptMicrophone(SILENCE)) as talk:
            await drained(talk)
    assert scope.cancelled_caught
    assert llm.log[-1] == ("close", None)


class BrokenMicrophone(ScriptMicrophone):
    """A microphone that fails after a second."""

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        async for frame in super().frames():
            if frame.start > RATE:
                raise AudioError("the file is damaged", "export it again")
            yield frame


async def test_a_failure_ends_the_events() -> None:
    async with opened() as (loop, _), loop.talk(BrokenMicrophone(SILENCE)) as talk:
        with pytest.raises(AudioError, match="damaged"):
            await drained(talk)
        assert await drained(talk) == []  # it was told


async def test_closing_the_loop_ends_conversations_elsewhere() -> None:
    ended, since = anyio.Event(), anyio.current_time()

    async def hold(loop: Loop, begun: anyio.Event) -> None:
        async with loop.talk(ScriptMicrophone(SILENCE)) as talk:
            begun.set()
            await drained(talk)
        ended.set()

    async with anyio.create_task_group() as tasks:
        async with opened() as (loop, llm):
            begun = anyio.Event()
            tasks.start_soon(hold, loop, begun)
            await begun.wait()
        await ended.wait()
    assert anyio.current_time() - since < 1
    assert llm.log[-1] == ("close", None)
    with pytest.raises(VoiceloopError, match="closed"):
        async with loop.talk(ScriptMicrophone(SILENCE)):
            pass
    with pytest.raises(VoiceloopError, match="closed"):
        await loop.ask(np.ones(RATE, np.float32))


async def test_a_goodbye_ends_the_conversation() -> None:
    script = says(Utterance(0.5, "Goodbye"), total_s=60.0)
    llm, run = ScriptedLlm({}), InlineRunner
    engines = Engines(
        *(ScriptedVad(), ScriptedAsr(script), run(), llm, run(), ScriptedTts(), run()),
        new_vad=ScriptedVad,
    )
    async with running(engines, Config()) as loop:
        async with loop.talk(ScriptMicrophone(script)) as talk:
            begun = anyio.current_time()
            (over,) = overs(await drained(talk))
            assert over.outcome == "done" and anyio.current_time() - begun < 10


# ---- questions


class TimedAsr(ScriptedAsr):
    """A recogniser that knows the words by their times: it hears recordings without their offset,
    and so not the levels by which scripted words differ."""

    def transcribe(self, request: AsrRequest) -> list[Word]:
        assert isinstance(self.lexicon, Script)
        seconds = len(request.pcm) / RATE
        said = [one for one in self.lexicon.utterances if one.end <= seconds]
        return [Word(text, one.start, one.end) for one in said for text in one.text.split()]


async def test_a_question_with_pauses_is_one_turn() -> None:
    script = says(Utterance(0.5, "Tell me"), Utterance(3.0, "about the sky"), total_s=5.0)
    async with opened(script, TimedAsr) as (loop, llm):
        turn = await loop.ask(script.pcm(), pace="realtime")
        assert (turn.said, turn.reply, turn.outcome) == (SKY, SKY_REPLY, "done")
        assert turn.rate == ScriptedTts().rate
        assert len(turn.audio) == len(SKY_REPLY.split()) * ScriptedTts().word_samples
        assert turn.endpoint_to_sound_ms == pytest.approx(70, abs=60)
        assert llm.log[-1] == ("close", None)


async def frames_of(pcm: Any, rate: int) -> Pcm:
    with question(pcm, rate, RATE, "max", SETTINGS.turns) as asked:
        async with aclosing(asked.microphone.frames()) as frames:
            return np.concatenate([(await anext(frames)).pcm for _ in range(80)])


@pytest.mark.parametrize(
    ("kind", "rate"), [("float64", RATE), ("int16", RATE), ("float32", 48_000)]
)
async def test_samples_may_have_other_types_and_rates(kind: str, rate: int) -> None:
    times = np.arange(rate) / rate
    tone = 0.5 * np.sin(2 * np.pi * 440 * times) * np.minimum(1, 10 * times)
    given = (tone * 32768 if kind == "int16" else tone).astype(kind)
    plain = await frames_of(tone[:: rate // RATE].astype(np.float32), RATE)
    assert np.abs(await frames_of(given, rate) - plain).max() < 2e-3


@pytest.mark.parametrize(
    ("pcm", "rate", "told"),
    [
        (np.zeros(0, np.float32), RATE, "no samples"),
        (np.zeros((2, 9), np.float32), RATE, "shape"),
        (np.zeros(9, np.complex64), RATE, "complex64"),
        (np.array(["a"]), RATE, "<U1"),
        (np.full(9, np.nan, np.float32), RATE, "no sound"),
        (np.zeros(9, np.float32), 4, "4 Hz"),
        (np.zeros(10 * RATE, np.float32), RATE, "10 s"),
        ("nowhere.wav", RATE, "does not exist"),
    ],
)
async def test_a_recording_that_cannot_be_used_is_told(pcm: Any, rate: int, told: str) -> None:
    async with opened() as (loop, llm):
        with pytest.raises(AudioError, match=told):
            await loop.ask(pcm, rate)
        assert not llm.log


# ---- where it sounds


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ({"speaker": NullSpeaker(RATE)}, "needs a microphone"),
        ({"microphone": "built-in", "speaker": NullSpeaker(RATE)}, "needs a microphone"),
        ({"microphone": ScriptMicrophone(SILENCE), "speaker": "built-in"}, "sound card"),
    ],
)
async def test_places_that_do_not_go_together_are_refused(
    places: dict[str, Any], told: str
) -> None:
    async with opened() as (loop, _):
        with pytest.raises(ConfigError, match=told):
            async with loop.talk(**places):
                pass


# ---- events


async def test_of_too_many_events_the_oldest_are_dropped_and_told() -> None:
    events = TalkEvents()
    for number in range(MOST + 7):
        events.note(str(number))
    events.close()
    events.note("too late")
    taken = list[str]()
    while (event := await events.take()) is not None:
        assert isinstance(event, Notice)
        taken.append(event.text)
    assert taken[0].startswith("7 event(s) were dropped")
    assert taken[1:] == [str(number) for number in range(7, MOST + 7)]
