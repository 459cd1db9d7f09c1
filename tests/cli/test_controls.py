"""The keys of `talk` in a session on a virtual clock: what they stop, mute, repeat and send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Script, ScriptMicrophone, Utterance
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.asr.turns import ManualTurnDetector
from voiceloop.audio.devices import FilteredMicrophone, Mute, NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.cli.controls import Controls
from voiceloop.engines import Engines
from voiceloop.session import Session
from voiceloop.settings.config import Config, LlmConfig, TurnConfig
from voiceloop.trace.record import Mark
from voiceloop.types import Event, TokenBurst, Transcript, TurnTrace
from voiceloop.view.keyboard import Keyboard, keys
from voiceloop.view.rows import Status

pytestmark = pytest.mark.virtual

SKY = "The sky is blue, and that is how it is. Look at it."
REPLIES = {
    "Tell me about the sky": ("The sky is blue, ", "and that is ", "how it is. ", "Look at it."),
    "And the sea": ("The sea is ", "deep."),
}
CONFIG = Config(llm=LlmConfig(skills="none"), turns=TurnConfig(endpoint="fixed", hangover_ms=400))


@dataclass
class Talked:
    """What came of a conversation."""

    events: list[Event] = field(default_factory=list[Event])
    statuses: dict[float, Status] = field(default_factory=dict[float, Status])
    """What the view was told, by the time."""
    ended: bool = False

    @property
    def traces(self) -> list[TurnTrace]:
        return [event for event in self.events if isinstance(event, TurnTrace)]

    def said(self, turn: int) -> str:
        return "".join(e.text for e in self.events if isinstance(e, TokenBurst) and e.turn == turn)


async def talk(
    *utterances: Utterance,
    pressed: Sequence[tuple[float, str]],
    total_s: float = 10.0,
    push_to_talk: bool = False,
    full_duplex: bool = False,
    drawn: bool = True,
) -> Talked:
    """Talk as scripted, and press keys at their times."""
    talked, script = Talked(), Script(utterances, total_s)
    mute = Mute(muted=push_to_talk)
    microphone = FilteredMicrophone(ScriptMicrophone(script), mute)
    detector = ManualTurnDetector(CONFIG.turns, talking=False) if push_to_talk else None
    controls = Controls(cast(Keyboard, object()), mute, detector, figures=True)
    inline = InlineRunner
    llm, tts = ScriptedLlm(REPLIES), ScriptedTts()
    engines = Engines(ScriptedVad(), ScriptedAsr(script), inline(), llm, inline(), tts, inline())
    session = Session(
        *(engines, microphone, NullSpeaker(RATE), CONFIG, talked.events.append),
        full_duplex=full_duplex or push_to_talk,
        detector=detector,
    )
    controls.follow(session, talked.events.append if drawn else None)

    def end() -> None:
        talked.ended = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        for at, key in pressed:
            await anyio.sleep_until(at)
            talked.statuses[at] = controls.status(at)
            controls.press(key, session, end)
    return talked


SKY_ASKED = Utterance(0.5, "Tell me about the sky")
"""It ends at 2.0 s, and is answered from 2.4 s on."""


@pytest.mark.parametrize("key", [" ", "\x1b"])
async def test_a_reply_is_stopped(key: str) -> None:
    talked = await talk(SKY_ASKED, pressed=[(3.0, key)])
    (trace,) = talked.traces
    assert trace.outcome == "interrupted"
    assert trace.heard and SKY.startswith(trace.heard) and trace.heard != SKY
    assert trace.marks[Mark.SOUND_END] == pytest.approx(3.0, abs=0.1)


async def test_while_muted_nothing_is_heard_and_time_goes_on() -> None:
    talk_twice = (Utterance(0.5, "Tell me about the sky"), Utterance(7.0, "And the sea"))
    talked = await talk(*talk_twice, pressed=[(0.1, "m"), (6.5, "M"), (6.6, "x")])
    assert [trace.heard for trace in talked.traces] == ["The sea is deep."]
    assert talked.statuses[0.1].idle == "listening"
    assert (talked.statuses[6.5].idle, talked.statuses[6.5].level) == ("muted", 0.0)
    assert talked.statuses[6.6].idle == "listening"


async def test_a_reply_is_repeated_without_the_model() -> None:
    talked = await talk(SKY_ASKED, pressed=[(3.0, "r"), (7.0, "r")], total_s=13.0)
    assert [trace.heard for trace in talked.traces] == [SKY, SKY]
    assert talked.said(2) == SKY
    assert not talked.traces[1].counters.get("drafted")


async def test_q_quits() -> None:
    assert (await talk(pressed=[(1.0, "q")])).ended
    assert not (await talk(pressed=[(1.0, "w")])).ended


# Typing


def typed(text: str, begin: float) -> list[tuple[float, str]]:
    return [(begin + 0.001 * place, key) for place, key in enumerate(text)]


async def test_a_typed_line_is_a_turn_and_its_keys_do_nothing_else() -> None:
    line = "tquit mr\x15Whe\x7fo\x7f\x7f\x7fAnd the sea\n\x1b"
    talked = await talk(pressed=typed(line, 1.0))
    assert [trace.heard for trace in talked.traces] == ["The sea is deep."]
    assert not talked.ended
    said = [event for event in talked.events if isinstance(event, Transcript)]
    assert [(one.turn, one.text, one.final) for one in said] == [(1, "And the sea", True)]
    assert talked.statuses[1.0].typed is None and talked.statuses[1.001].typed == ""
    assert (await talk(pressed=typed("tq\x1bq", 1.0))).ended, "Esc closes the line"
    assert (await talk(pressed=typed("t \nq", 1.0))).ended, "so does Enter if it is empty"


async def test_keys_of_the_view_switch_figures_and_the_list_of_keys() -> None:
    pressed = [(0.1, "x"), (0.2, "f"), (0.3, "?"), (0.4, "?"), (0.5, "f"), (0.6, "x")]
    statuses = (await talk(pressed=pressed)).statuses
    assert [statuses[at].figures for at in (0.2, 0.3, 0.6)] == [True, False, True]


@pytest.mark.parametrize("pushed", [True, False])
async def test_every_key_is_listed(pushed: bool) -> None:
    talked = await talk(pressed=[(0.2, "?"), (0.3, "x")], push_to_talk=pushed)
    brief, whole = talked.statuses[0.2].keys, talked.statuses[0.3].keys.split("\n")
    assert len(brief) <= 52 and brief.endswith("q quit"), "they fit into 60 columns"
    listed = {line.split()[0] for line in whole}
    assert listed == {"space", "t", "r", "f", "?", "q", "esc" if pushed else "m"}


# Push to talk


async def test_between_two_presses_is_one_turn_whatever_the_silence_in_it() -> None:
    slow = (Utterance(0.5, "Tell me about"), Utterance(3.0, "the sky"))
    talked = await talk(*slow, pressed=[(0.3, " "), (1.0, "x"), (4.0, " ")], push_to_talk=True)
    (trace,) = talked.traces
    assert (trace.outcome, trace.heard) == ("done", SKY)
    assert trace.marks[Mark.ENDPOINT] == pytest.approx(4.0, abs=0.02)
    assert talked.statuses[0.3].idle == "press space to talk"
    assert talked.statuses[1.0].idle == "listening"


async def test_talking_over_a_reply_interrupts_it_and_m_does_nothing() -> None:
    talk_over = (SKY_ASKED, Utterance(3.2, "And the sea"))
    presses = [(0.3, " "), (2.1, " "), (2.2, "m"), (3.0, " "), (4.3, " ")]
    talked = await talk(*talk_over, pressed=presses, push_to_talk=True)
    assert [(trace.outcome, trace.heard == SKY) for trace in talked.traces] == [
        ("interrupted", False),
        ("done", False),
    ]
    assert talked.traces[1].heard == "The sea is deep."


# The bytes of a terminal

printable = st.characters(min_codepoint=32, max_codepoint=126)


@given(st.text(printable, max_size=8))
def test_keys_that_come_together_are_all_pressed(typed: str) -> None:
    assert keys(typed) == typed


arrows = st.sampled_from(["\x1b[A", "\x1b[1;5C", "\x1b[15~", "\x1bOB", "\x1b[Z", "\x1bm"])


@given(st.lists(arrows | printable, max_size=8))
def test_an_arrow_is_no_esc_and_hides_no_key(typed: list[str]) -> None:
    assert keys("".join(typed)) == "".join(key for key in typed if len(key) == 1)


def test_esc_is_a_key() -> None:
    assert keys("\x1b") == "\x1b"
    assert keys("\x1b\x1b") == "\x1b\x1b"
