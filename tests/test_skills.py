"""What rules answer in a session, on a virtual clock: effects, interruptions, rings and the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import numpy as np
import pytest
from msgspec import structs
from msgspec.structs import replace

from tests.fakes import Utterance
from tests.support.scripted import ScriptedLlm, ScriptedTts
from tests.test_session import CONFIG, RATE, Result, converse, said
from voiceloop.audio.devices import NullSpeaker
from voiceloop.dialogue import inputs
from voiceloop.settings.config import LlmConfig
from voiceloop.skills.known import Timer
from voiceloop.turn.skills import Skills
from voiceloop.types import Notice, Pcm, TokenBurst, TurnTrace

pytestmark = pytest.mark.virtual

RULES = structs.replace(CONFIG, llm=LlmConfig())
STORY = "Once there was a whale who wanted to see the mountains and swam and swam all day."
REPLIES = {
    "Tell me a story": tuple(f"{word} " for word in STORY.split()),
    "And the sea": ("The sea is ", "deep."),
}


async def talk(*said: Utterance, **options: Any) -> Result:
    """A conversation in which rules answer what they know."""
    llm = ScriptedLlm(REPLIES)
    return await converse(*said, config=RULES, llm=llm, **options)


def asked(result: Result) -> list[object]:
    """What the language model was asked to reply to."""
    return [text for name, text in result.log if name in ("reply", "revise")]


def recited(result: Result) -> list[object]:
    return [told for name, told in result.log if name == "recite"]


def notices(result: Result) -> list[str]:
    return [event.text for event in result.events if isinstance(event, Notice)]


class Loudspeaker(NullSpeaker):
    """Keeps what it played."""

    def __init__(self) -> None:
        super().__init__(RATE)
        self.played: list[tuple[float, Pcm]] = []

    def write(self, pcm: Pcm) -> float:
        due = super().write(pcm)
        self.played.append((due, pcm))
        return due

    def loudest(self, since: float, until: float) -> float:
        """The loudest sample of what began then."""
        return max(np.abs(pcm).max() for due, pcm in self.played if since <= due < until)


async def test_what_a_rule_knows_is_answered_without_the_model_and_kept() -> None:
    result = await talk(Utterance(0.5, "What time is it"))
    (trace,) = result.traces
    assert trace.outcome == "done" and trace.heard == "It's 2:05 PM." == said(result.events)
    assert not asked(result)
    assert recited(result)[-1] == ("What time is it", "It's 2:05 PM.")
    at = trace.marks
    assert at["pause"] < at["first_synthesis"] < at["endpoint"] == at["first_sound"]


CANNOT = "I can't do that. I only talk, and set timers, alarms and reminders."


@pytest.mark.parametrize(
    ("reply", "heard"),
    [
        (("Sure, ", "I opened ", "the garage ", "door. ", "Anything else?"), CANNOT),
        (("Gladly so. ", "I opened ", "the garage ", "door."), f"Gladly so. {CANNOT}"),
        (("As you said ", "I opened ", "the garage ", "door."), f"As you said – {CANNOT}"),  # noqa: RUF001
        (("I opened ", "my mind."), "I opened my mind."),
    ],
)
async def test_a_claim_of_what_was_not_done_is_replaced_before_it_sounds(
    reply: tuple[str, ...], heard: str
) -> None:
    llm = ScriptedLlm({"Do it": reply})
    result = await converse(Utterance(0.5, "Do it"), config=RULES, llm=llm)
    (trace,) = result.traces
    assert trace.heard == said(result.events) == heard
    assert trace.counters.get("replaced", 0) == (CANNOT in heard)
    shown = "".join(event.text for event in result.events if isinstance(event, TokenBurst))
    assert shown == heard, "nothing else was shown"
    if CANNOT in heard:
        assert recited(result)[-1] == ("Do it", heard), "the history has what was said"


async def test_with_rules_off_the_model_answers() -> None:
    llm = ScriptedLlm({"What time is it": ("It is noon.",)})
    result = await converse(Utterance(0.5, "What time is it"), llm=llm)
    assert said(result.events) == "It is noon." and not recited(result)


async def test_a_timer_is_set_once_and_only_when_the_user_has_finished() -> None:
    skills, running = Skills(), list[int]()

    def watch(event: object) -> None:
        running.append(len(skills.timers))

    result = await talk(
        Utterance(0.5, "Set a timer for ten minutes"),
        Utterance(2.6, "no"),  # a pause later: the guess was wrong
        Utterance(6.0, "Set a timer for ten minutes"),
        total_s=14.0,
        skills=skills,
        watch=watch,
    )
    first, second = result.traces
    assert first.counters.get("replies_dropped", 0) >= 1, "it was begun on a guess"
    assert first.heard.startswith("I have changed nothing.") and not asked(result)
    assert second.heard == "Your timer is set for 10 minutes."
    assert [timer.seconds for timer in skills.timers] == [600]
    assert notices(result) == ["1 timer(s) end with this session"]
    seen = [event for event in result.events if isinstance(event, TokenBurst) and event.turn == 2]
    assert max(running) == 1 and seen


async def test_stop_ends_what_sounds_and_is_answered_by_silence() -> None:
    result = await talk(
        Utterance(0.5, "Tell me a story"),
        Utterance(3.0, "Stop"),
        Utterance(6.0, "And the sea"),
        total_s=10.0,
        full_duplex=True,
    )
    story, stop, sea = result.traces
    assert story.outcome == "interrupted" and STORY.startswith(story.heard)
    assert stop.outcome == "done" and stop.heard == "" and not said(result.events, 2)
    assert sea.heard == "The sea is deep.", "nothing of stop is left in what is asked next"
    assert asked(result)[-1] == "And the sea" and not recited(result)
    heard = [tokens for name, tokens in result.log if name == "heard"]
    assert heard == [len(story.heard.split())], "the story was cut once, by its own words"


async def test_a_stop_that_stops_nothing_is_silent_too() -> None:
    result = await talk(Utterance(0.5, "Never mind."))
    (trace,) = result.traces
    assert trace.outcome == "done" and not trace.heard and not notices(result)


async def test_a_coin_falls_alike_in_all_attempts_at_a_turn_but_not_in_all_turns() -> None:
    alike = set[bool]()
    for seed in range(6):
        result = await talk(
            Utterance(0.5, "Flip a coin"),
            Utterance(1.7, "please"),  # a pause later: the guess was wrong
            Utterance(6.0, "Flip a coin"),
            total_s=9.0,
            skills=Skills(seed=seed),
        )
        first, second = (trace.heard for trace in result.traces)
        assert recited(result) == [
            ("Flip a coin", first),
            ("Flip a coin please", first),
            ("Flip a coin", second),
        ]
        alike.add(first == second)
    assert alike == {True, False}


async def test_an_answer_that_is_interrupted_is_cut_by_what_was_heard() -> None:
    result = await talk(
        Utterance(0.5, "How many days are there until Christmas"),
        Utterance(4.0, "And the sea"),
        total_s=9.0,
        full_duplex=True,
        tts=ScriptedTts(word_samples=RATE // 2),
    )
    first, second = result.traces
    whole = "It is 354 days until Friday, December 25."
    assert first.outcome == "interrupted" and whole.startswith(first.heard) and first.heard
    assert ("heard", len(first.heard.split())) in result.log
    assert second.heard == "The sea is deep."


async def test_goodbye_ends_a_talk_once_it_has_been_heard() -> None:
    ended = list[float]()
    for ends in (True, False):
        result = await talk(
            Utterance(0.5, "Goodbye"), Utterance(8.0, "And the sea"), total_s=12.0, ends=ends
        )
        assert result.traces[0].heard == "Goodbye! Take care."
        assert len(result.traces) == (1 if ends else 2)
        ended.append(anyio.current_time())
    assert ended[0] < 4.0


async def test_a_goodbye_that_is_interrupted_is_no_end() -> None:
    result = await talk(
        Utterance(0.5, "Goodbye"),
        Utterance(1.6, "And the sea"),
        total_s=8.0,
        full_duplex=True,
        ends=True,
        tts=ScriptedTts(word_samples=RATE),
    )
    goodbye, sea = result.traces
    assert goodbye.outcome == "interrupted" and sea.heard == "The sea is deep."


async def test_a_cough_into_a_goodbye_hangs_nothing() -> None:
    result = await talk(
        Utterance(0.5, "Goodbye"),
        Utterance(1.6, "uh-huh"),
        total_s=30.0,
        full_duplex=True,
        ends=True,
        tts=ScriptedTts(word_samples=RATE // 2),
    )
    assert result.traces[-1].outcome in ("done", "abandoned")
    assert any(trace.heard == "Goodbye! Take care." for trace in result.traces)
    assert anyio.current_time() < 10.0


async def test_timers_that_ring_speak_after_what_is_being_said() -> None:
    result = await talk(
        Utterance(0.5, "Set a timer for five seconds"),
        Utterance(5.0, "Set an egg timer for one second"),
        Utterance(8.4, "Tell me a story"),
        total_s=22.0,
        full_duplex=True,
    )
    over = [event for event in result.events if isinstance(event, TurnTrace)]
    heard = [trace.heard for trace in over if trace.heard]
    rings = ["The egg timer is over.", "The timer of 5 seconds is over."]
    assert not notices(result)
    assert sorted(heard[-2:]) == rings, "what nobody has heard is said again"
    assert heard[-3] == STORY, "a ring waits until the story is over"


async def test_a_ring_can_be_stopped_and_holds_the_microphone_of_a_loudspeaker() -> None:
    script = (Utterance(0.5, "Set a timer for five seconds"),)
    result = await talk(*script, total_s=12.0)
    assert [trace.heard for trace in result.traces][-1] == "The timer of 5 seconds is over."
    assert result.microphone.held.count("hold") >= 2
    stopped = await talk(
        *script,
        Utterance(8.3, "Stop"),
        total_s=16.0,
        full_duplex=True,
        tts=ScriptedTts(word_samples=RATE // 2),
    )
    outcomes = [trace.outcome for trace in stopped.traces]
    assert outcomes == ["done", "interrupted", "done"]


async def test_a_canceled_timer_does_not_ring() -> None:
    result = await talk(
        Utterance(0.5, "Set a timer for ten seconds"),
        Utterance(5.0, "Cancel the timer"),
        total_s=20.0,
    )
    assert [trace.heard for trace in result.traces] == [
        "Your timer is set for 10 seconds.",
        "Okay, the timer of 10 seconds is canceled.",
    ]
    assert not notices(result)


async def test_a_paused_timer_waits_and_then_goes_on_with_what_was_left() -> None:
    result = await talk(
        Utterance(0.5, "Set a timer for ten seconds"),
        Utterance(5.0, "Pause the timer"),
        Utterance(15.0, "Resume the timer"),
        total_s=32.0,
    )
    paused, resumed, rang = result.traces[1:]
    assert paused.heard.startswith("Okay, the timer of 10 seconds is paused")
    assert resumed.heard.startswith("Okay, the timer of 10 seconds goes on")
    assert rang.heard == "The timer of 10 seconds is over." and not notices(result)


@pytest.mark.parametrize("late_s", [0.0, 3600.0, 5 * 86_400.0])
async def test_a_repeated_alarm_rings_once_if_late_says_so_and_rings_again_in_time(
    late_s: float,
) -> None:
    skills, now = Skills(), datetime.now(UTC)
    due = now - timedelta(seconds=late_s)
    alarm = Timer(1, "alarm", due, 60, "", "This is your alarm.", days=tuple(range(7)))
    skills.recall(replace(skills.memory(), timers=(alarm,)))
    rung = list[str]()

    def report(rang: inputs.Input) -> None:
        assert isinstance(rang, inputs.Rang)
        rung.append(rang.text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(skills.ring, report)
        await anyio.sleep(60.0)
        (first,), (again,) = rung, skills.timers
        assert first.endswith("This is your alarm.")
        assert ("While I was off" in first) == (late_s > 60)
        assert again.due.time() == due.time() and timedelta() < again.due - now <= timedelta(days=1)
        await anyio.sleep(86_400.0)
        assert rung[1:] == ["This is your alarm."]
        tasks.cancel_scope.cancel()


async def test_softer_is_softer_from_its_own_answer_on_and_is_nothing_that_was_asked() -> None:
    speaker = Loudspeaker()
    result = await talk(
        Utterance(0.5, "And the sea"),
        Utterance(4.0, "Speak softer"),
        Utterance(8.0, "And the sea"),
        Utterance(12.0, "What did I just ask"),
        total_s=17.0,
        speaker=speaker,
    )
    assert result.traces[-1].heard == "You said: And the sea."
    first, softer, again = (trace.marks["first_sound"] for trace in result.traces[:3])
    before = speaker.loudest(first, softer - 1.0)
    for since in (softer + 0.1, again):
        assert speaker.loudest(since, since + 0.3) == pytest.approx(before / 2, rel=0.01)


async def test_slower_is_slower_from_its_own_answer_on_and_lasts() -> None:
    skills = Skills()
    result = await talk(
        Utterance(0.5, "And the sea"),
        Utterance(4.0, "Speak slower"),
        Utterance(8.0, "And the sea"),
        total_s=14.0,
        skills=skills,
    )
    first, slower, again = (
        (trace.marks["sound_end"] - trace.marks["first_sound"]) / len(trace.heard.split())
        for trace in result.traces
    )
    assert slower == pytest.approx(again, rel=0.05) == pytest.approx(first * 1.2, rel=0.05)
    assert skills.voice.speed == pytest.approx(1 / 1.2)
