"""Conversations that wait for a wake word, on a virtual clock with scripted engines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import Script, ScriptMicrophone, Utterance
from tests.support.clock import VirtualClock
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.audio.devices import FilteredMicrophone, Mute, NullSpeaker, Tap
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.cli.controls import Controls
from voiceloop.engines import Engines
from voiceloop.session import Session
from voiceloop.settings.config import Config, LlmConfig, TurnConfig
from voiceloop.types import AudioFrame, Clause, Event, Transcript, TurnTrace
from voiceloop.wake.microphone import WakeMicrophone
from voiceloop.wake.phrase import AddressedAsr, Phrase
from voiceloop.wake.spoken import SpokenPhrase

pytestmark = pytest.mark.virtual

SKY = "The sky is blue, and that is how it is. Look at it."
REPLIES = {
    "Tell me about the sky": ("The sky is blue, ", "and that is ", "how it is. ", "Look at it."),
    "And the sea": ("The sea is ", "deep."),
}
CONFIG = Config(llm=LlmConfig(skills="none"), turns=TurnConfig(endpoint="fixed", hangover_ms=400))
PHRASE = "okay computer"
OPEN_S = 3.0


@dataclass
class Talked:
    """What came of a conversation."""

    events: list[Event] = field(default_factory=list[Event])
    frames: list[AudioFrame] = field(default_factory=list[AudioFrame])
    """What the session was given to hear, and would have recorded."""
    changes: list[tuple[float, bool]] = field(default_factory=list[tuple[float, bool]])
    """When the microphone woke, and when it fell asleep."""
    idle: dict[float, str] = field(default_factory=dict[float, str])
    """What the state row said between turns, by the time."""
    llm: ScriptedLlm = field(default_factory=lambda: ScriptedLlm(REPLIES))
    decoded: int = 0
    """Number of decodes."""

    @property
    def traces(self) -> list[TurnTrace]:
        return [event for event in self.events if isinstance(event, TurnTrace)]

    @property
    def said(self) -> list[str]:
        """The words of the user."""
        return [e.text for e in self.events if isinstance(e, Transcript) and e.final]

    @property
    def woke(self) -> list[bool]:
        return [awake for _, awake in self.changes]


async def talk(
    *utterances: Utterance,
    total_s: float = 12.0,
    config: Config = CONFIG,
    cost: float = 0.05,
    looks: Sequence[float] = (),
    muted: bool = False,
    fail: Callable[[str], bool] = lambda text: False,
) -> Talked:
    """Talk as scripted. `cost` is that of a decode, in seconds."""
    talked, script = Talked(), Script(utterances, total_s)
    asr, inline = ScriptedAsr(script, cost=cost, fail=fail), InlineRunner
    engines = Engines(
        *(ScriptedVad(), asr, inline(), talked.llm, inline(), ScriptedTts(), inline())
    )
    phrase = Phrase(PHRASE)
    word = SpokenPhrase(phrase, ScriptedVad(), engines, config.turns)
    mute = Mute(muted=muted)
    switched = FilteredMicrophone(ScriptMicrophone(script), mute)

    def changed(awake: bool) -> None:
        talked.changes.append((anyio.current_time(), awake))

    wake = WakeMicrophone(switched, word, OPEN_S, changed)
    controls = Controls(None, mute, None, wake)
    session = Session(
        replace(engines, asr=AddressedAsr(asr, phrase, lambda: word.said_until)),
        FilteredMicrophone(wake, Tap(talked.frames.append)),
        *(NullSpeaker(RATE), config, talked.events.append),
        full_duplex=True,
    )
    controls.follow(session, talked.events.append)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        for at in looks:
            await anyio.sleep_until(at)
            talked.idle[at] = controls.status(at).idle
    talked.decoded = len(asr.windows)
    return talked


async def test_before_the_phrase_nothing_is_heard_shown_recorded_or_answered() -> None:
    talked = await talk(
        Utterance(0.5, "Tell me about the sky"), Utterance(4.0, "And the sea"), looks=[1.0]
    )
    assert not talked.events and not talked.changes
    assert not [said for _, said in talked.llm.log if said]
    assert not any(frame.pcm.any() for frame in talked.frames)
    assert sum(len(frame.pcm) for frame in talked.frames) == 12 * RATE
    assert talked.idle[1.0] == 'waiting for "okay computer"'


async def test_the_request_may_follow_in_the_same_breath() -> None:
    talked = await talk(Utterance(1.0, "Okay computer Tell me about the sky"))
    assert talked.said == ["Tell me about the sky"]
    assert [trace.heard for trace in talked.traces] == [SKY]
    shown = [e.text for e in talked.events if isinstance(e, Transcript)]
    assert not [text for text in shown if "computer" in text or "Okay" in text]
    asked = [str(text) for _, text in talked.llm.log]
    assert not [text for text in asked if "computer" in text or "Okay" in text]


async def test_the_request_may_follow_after_the_sound() -> None:
    talked = await talk(
        Utterance(1.0, PHRASE), Utterance(3.0, "Tell me about the sky"), looks=[2.5]
    )
    assert talked.said == ["Tell me about the sky"]
    assert talked.changes[0] == (pytest.approx(1.6 + 0.25, abs=0.1), True)
    assert talked.idle[2.5] == "listening"


async def test_the_phrase_alone_is_answered_by_nobody() -> None:
    talked = await talk(Utterance(1.0, PHRASE))
    assert not talked.events
    assert talked.woke == [True, False]
    (woke, _), (slept, _) = talked.changes
    assert slept - woke == pytest.approx(OPEN_S, abs=0.1)


async def test_what_follows_a_reply_needs_no_phrase_until_time_is_over() -> None:
    asked = (
        Utterance(1.0, f"{PHRASE} Tell me about the sky"),
        Utterance(7.0, "And the sea"),
        Utterance(14.0, "And the sea"),
    )
    talked = await talk(*asked, total_s=18.0)
    assert talked.said == ["Tell me about the sky", "And the sea"]
    assert talked.woke == [True, False]
    over = talked.traces[1].marks["sound_end"]
    assert talked.changes[1][0] == pytest.approx(over + OPEN_S, abs=0.1)


@pytest.mark.parametrize(
    "said", ["I said okay computer", "My computer Tell me about the sky", "okay", "computer"]
)
async def test_other_words_do_not_wake_it(said: str) -> None:
    talked = await talk(Utterance(1.0, said))
    assert not talked.events and not talked.changes


async def test_long_talk_costs_two_decodes() -> None:
    talked = await talk(Utterance(0.5, "some words that nobody is meant to answer " * 4))
    assert not talked.changes
    assert talked.decoded <= 2


async def test_a_timer_rings_while_it_sleeps() -> None:
    config = Config(turns=CONFIG.turns)
    talked = await talk(
        Utterance(1.0, f"{PHRASE} Set a timer for ten seconds"), total_s=20.0, config=config
    )
    assert talked.woke == [True, False]
    rang = [e for e in talked.events if isinstance(e, Clause) and "timer" in e.text.lower()]
    assert len(rang) >= 2  # it is confirmed, and it rings
    assert talked.traces[-1].marks["first_sound"] > talked.changes[1][0]


async def test_a_decode_that_fails_does_not_end_the_conversation() -> None:
    asked = Utterance(1.0, "break it"), Utterance(4.0, f"{PHRASE} And the sea")
    talked = await talk(*asked, fail=lambda text: text.startswith("break"))
    assert talked.said == ["And the sea"]


async def test_while_muted_it_does_not_wake() -> None:
    talked = await talk(Utterance(1.0, f"{PHRASE} And the sea"), muted=True, looks=[0.5])
    assert not talked.events and not talked.changes
    assert talked.idle[0.5] == "muted"


@settings(max_examples=25, deadline=None)
@given(
    start=st.floats(0.3, 2.0),
    word_s=st.floats(0.28, 0.6),
    cost=st.floats(0.0, 0.8),
    pause_s=st.sampled_from([0.0, 0.05, 0.15, 0.5, 1.2]),
)
def test_no_word_of_a_request_is_lost(
    start: float, word_s: float, cost: float, pause_s: float
) -> None:
    """Whenever it is said, however fast, and however slow the recogniser is."""
    phrase = Utterance(start, PHRASE, word_s)
    request = Utterance(phrase.end + pause_s, "Tell me about the sky", word_s)

    async def main() -> None:
        talked = await talk(phrase, request, cost=cost, total_s=20.0)
        assert " ".join(talked.said) == "Tell me about the sky"
        assert talked.woke == [True, False]

    VirtualClock().run(main)


# The microphone alone


@dataclass
class ScriptedWord:
    """A wake word that is found at given samples, each with the sample from which on to hear."""

    found: dict[int, int]
    keep: int
    """Samples that are kept back."""
    name: str = "scripted"
    needed: int = 0
    resets: int = 0

    async def feed(self, frame: AudioFrame) -> int | None:
        self.needed = max(0, frame.end - self.keep)
        return self.found.get(frame.end)

    def reset(self) -> None:
        self.resets += 1


class Counted:
    """A microphone whose samples tell their own index."""

    finished = False

    def __init__(self, frames: int) -> None:
        self._frames = frames

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        for at in range(0, 160 * self._frames, 160):
            self.finished = at == 160 * (self._frames - 1)
            yield AudioFrame(np.arange(at + 1, at + 161, dtype=np.float32), RATE, at)

    def hold(self) -> None:
        """Do nothing."""

    def release(self) -> None:
        """Do nothing."""


@given(
    found=st.dictionaries(st.integers(1, 400), st.integers(0, 300), max_size=3),
    keep=st.integers(0, 20_000),
)
def test_each_frame_is_passed_on_once_in_order_whole_or_silent(
    found: dict[int, int], keep: int
) -> None:
    async def main() -> None:
        word = ScriptedWord({160 * at: 160 * at - back for at, back in found.items()}, keep)
        changes = list[bool]()
        wake = WakeMicrophone(Counted(500), word, 1.0, changes.append)
        passed = [frame async for frame in wake.frames()]
        assert [frame.start for frame in passed] == [*range(0, 160 * 500, 160)]
        assert wake.finished
        pcm = np.concatenate([frame.pcm for frame in passed])
        index = np.arange(1, len(pcm) + 1)
        assert np.all((pcm == 0) | (pcm == index))
        heard, asleep = np.zeros(len(pcm), bool), 0
        for end, begin in sorted(word.found.items()):
            if end >= asleep:
                gone = max(0, end - 160 - word.keep) // 160 * 160  # it was passed on as silence
                asleep = end + RATE
                heard[max(begin, gone) : asleep - 160] = True
        assert np.array_equal(pcm != 0, heard)
        assert changes == [True, False] * (len(changes) // 2) + [True] * (len(changes) % 2)
        assert word.resets == changes.count(False)

    VirtualClock().run(main)
