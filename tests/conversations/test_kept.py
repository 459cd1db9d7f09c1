"""Sessions that are kept, on a virtual clock: what is in the store is what the session heard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import Script, ScriptMicrophone, Utterance
from tests.support.clock import VirtualClock
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from tests.test_session import CONFIG, RATE
from voiceloop.audio.devices import NullSpeaker
from voiceloop.conversations.condensing import Continuing
from voiceloop.conversations.keeping import KeptConversation, ResumedConversation, kept
from voiceloop.conversations.records import KeptRecord, KeptTurn, past
from voiceloop.conversations.store import ConversationStore
from voiceloop.engines import Engines
from voiceloop.llm.text.messages import OWN_CALL
from voiceloop.session import Session
from voiceloop.settings.config import Config, LlmConfig
from voiceloop.types import Event, Notice, Past, ToolCall, TurnTrace

pytestmark = pytest.mark.virtual

STORY = "Once there was a whale who wanted to see the mountains and swam and swam all day."
REPLIES: dict[str, Sequence[str | ToolCall]] = {
    "Tell me a story": tuple(f"{word} " for word in STORY.split()),
    "And the sea": ("The sea is ", "deep."),
    "How late": (ToolCall(1, "c1", "get_time", {}),),
}
RULES = CONFIG.__class__(llm=LlmConfig(target="big"), turns=CONFIG.turns)


class Talked:
    """What a kept session showed, and what its models were asked."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.llm = ScriptedLlm(REPLIES, results={"get_time": ("It is ", "noon.")})

    @property
    def traces(self) -> list[TurnTrace]:
        return [event for event in self.events if isinstance(event, TurnTrace)]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    def told(self, what: str) -> list[Any]:
        """The arguments of the model's calls of this name."""
        return [argument for name, argument in self.llm.log if name == what]


def talk(
    path: Path,
    *said: Utterance,
    total_s: float = 8.0,
    config: Config = RULES,
    look: Callable[[Session], None] = lambda session: None,
) -> Talked:
    """Have a session that is kept in the conversation `work`."""
    talked = Talked()

    async def converse() -> None:
        script = Script(said, total_s)
        runners = [InlineRunner() for _ in range(3)]
        engines = Engines(
            ScriptedVad(), ScriptedAsr(script), runners[0], talked.llm, runners[1], ScriptedTts(),
            runners[2],
        )  # fmt: skip
        goes_on = Continuing(
            found, engines, config, lambda text: talked.events.append(Notice(text))
        )
        session = Session(
            *(engines, ScriptMicrophone(script), NullSpeaker(RATE), config, talked.events.append),
            full_duplex=True,
            **goes_on.options(),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(goes_on.keep, session)
            await session.run()
            look(session)
            tasks.cancel_scope.cancel()
        await goes_on.aclose()

    with kept(path, "work", pytest.fail) as found:
        VirtualClock().run(converse)
    return talked


def record(path: Path) -> KeptRecord:
    with closing(ConversationStore(path, print)) as store:
        return store.record("work")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversations.sqlite3"


def test_the_user_hears_of_a_store_that_fails_and_of_its_return() -> None:
    told: list[str] = []
    troubles = ["", "disk is full", "disk is full", "", "it is locked"]
    states = iter(troubles)
    conversation = KeptConversation(
        ResumedConversation(), lambda *_: None, lambda: next(states, troubles[-1]), 0
    )

    async def follow() -> None:
        with anyio.move_on_after(1):
            await conversation.follow(cast(Session, SimpleNamespace(sounding=None)), told.append)

    VirtualClock().run(follow)
    gone, back = "this conversation is not kept from here on: ", "this conversation is kept again"
    assert told == [f"{gone}disk is full", back, f"{gone}it is locked"]


@settings(max_examples=25, deadline=None)
@given(st.floats(1.5, 5.0), st.booleans())
def test_the_kept_rows_are_the_history_that_the_session_had(
    tmp_path_factory: pytest.TempPathFactory, at: float, tool: bool
) -> None:
    path = tmp_path_factory.mktemp("kept") / "c.sqlite3"
    first = "How late" if tool else "Tell me a story"
    talked = talk(path, Utterance(0.2, first), Utterance(at, "And the sea"), total_s=at + 6)
    rows = record(path).turns
    heard = [trace.heard for trace in talked.traces if trace.outcome != "abandoned"]
    assert [turn.heard for turn in rows] == heard
    outcomes = [trace.outcome for trace in talked.traces if trace.outcome != "abandoned"]
    assert [turn.outcome for turn in rows] == outcomes
    assert rows[-1].said.endswith("And the sea")


def test_what_a_conversation_goes_on_with_is_what_was_heard(path: Path) -> None:
    first = talk(path, Utterance(0.2, "Tell me a story"), Utterance(2.6, "And the sea"))
    story, sea = (trace.heard for trace in first.traces)
    assert story and STORY.startswith(story) and story != STORY
    second = talk(path, Utterance(4.0, "And the sea"))
    (_, history), *_ = second.told("rewrite")
    assert history == (
        Past("Tell me a story", (story,)),
        Past("And the sea", (sea,)),
    )
    assert [turn.number for turn in record(path).turns] == [1, 2, 3]


def test_a_greeting_sounds_while_the_history_is_read_and_is_not_kept(path: Path) -> None:
    talk(path, Utterance(0.2, "And the sea"))
    second = talk(path, Utterance(4.0, "And the sea"))
    greeting, sea = second.traces
    assert greeting.heard == "Welcome back." and sea.heard == "The sea is deep."
    names = [name for name, _ in second.llm.log]
    assert names.index("recite") < names.index("catch_up")
    assert "prefill" not in names[: names.index("catch_up")], "nothing delays the greeting"
    (span,) = [one for one in greeting.spans if one.name == "catch up"]
    assert span.end <= greeting.marks["sound_end"]
    assert [turn.said for turn in record(path).turns] == ["And the sea", "And the sea"]


def test_timers_go_on(path: Path) -> None:
    first = talk(path, Utterance(0.2, "Set a timer for ten minutes"))
    assert first.notices == ["1 timer(s) wait until this conversation goes on"]
    left: list[int] = []
    talk(path, look=lambda session: left.append(len(session._resources.skills.timers)))
    assert left == [1]


def test_what_a_rule_did_goes_on_as_its_call(path: Path) -> None:
    talk(path, Utterance(0.2, "Set a timer for ten minutes"))
    (turn,) = record(path).turns
    assert turn.heard == "Your timer is set for 10 minutes." and not turn.kept
    second = talk(path)
    (_, (exchange,)), *_ = second.told("rewrite")
    ((call, result),) = exchange.replied
    assert exchange.said == turn.said and call.name == f"{OWN_CALL}timers"
    assert "the timer of 10 minutes" in result


def test_what_is_to_be_remembered_is_kept_apart_and_told_to_the_model(path: Path) -> None:
    first = talk(path, Utterance(0.2, "Remember that my sister is called Anna"))
    assert first.traces[0].heard == "Okay, I'll remember that."
    assert [fact.text for fact in record(path).facts] == ["my sister is called Anna"]
    second = talk(path, Utterance(4.0, "What do you remember about me"))
    (system, _), *_ = second.told("rewrite")
    assert "my sister is called Anna." in system
    assert second.traces[-1].heard == "You asked me to remember: My sister is called Anna."
    third = talk(path, Utterance(4.0, "Forget that my sister is called Anna"), total_s=14.0)
    assert third.traces[-1].heard == "Okay, I forget that." and not record(path).facts
    systems = [system for system, _ in third.told("rewrite")]
    assert "Anna" in systems[0] and "Anna" not in systems[-1], "told in idle time"


def test_forget_that_strikes_what_was_just_kept_and_is_else_a_stop(path: Path) -> None:
    talk(
        path,
        Utterance(0.2, "Remember that I live in Lisbon"),
        Utterance(6.0, "Forget that"),
        Utterance(10.0, "Forget that"),
        total_s=14.0,
    )
    found = record(path)
    assert not found.facts
    assert [turn.heard for turn in found.turns[1:]] == ["Okay, I forget that."]


def test_words_that_were_interrupted_unheard_belong_to_the_next_exchange() -> None:
    at = datetime(2026, 11, 26, tzinfo=UTC)
    unheard = KeptTurn(number=1, at=at, said="Tell me", outcome="interrupted")
    done = KeptTurn(number=2, at=at, said="about it", outcome="done", kept="It is.")
    assert past([unheard, done]) == [Past("Tell me about it", ("It is.",))]
    assert past([done, unheard]) == [Past("about it", ("It is.",))]
