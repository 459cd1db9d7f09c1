"""Scenarios: files that are tests, the same bytes whatever the order of tasks, bad files."""

from __future__ import annotations

import dataclasses
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.clock import LateRunner, LateSpeaker, VirtualClock
from tests.support.expected import differences
from tests.support.run import PlayedScenario, play, scripted_engines
from tests.support.runner import InlineRunner, Timed
from tests.support.scenario import Scenario, ScriptedReply, Stages, UserSound, load_scenario
from tests.support.user import Lexicon
from tests.traces import out_of_order
from voiceloop.engines import Engines
from voiceloop.replay.recorded import Difference, lines, records, timeline, turns
from voiceloop.trace.record import Mark, to_perfetto
from voiceloop.turn.resources import OVERLAPS
from voiceloop.types import Clause, TokenBurst, ToolCall

pytestmark = pytest.mark.virtual

FOLDER = Path(__file__).parent / "data" / "scenarios"
SCENARIOS = sorted(FOLDER.glob("*.toml"))


def everything(replay: PlayedScenario) -> str:
    """All that is told of a replay, in every form."""
    said = [f"{at} {sound.what}" for at, sound in replay.said]
    plain = [json.dumps(record) for record in records(replay, [])]
    traces = json.dumps(to_perfetto(replay.traces))
    return "\n".join([*said, *lines(replay, []), *plain, traces, replay.problem])


def write(folder: Path, text: str) -> Path:
    """A scenario file."""
    path = folder / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return path


# Scenarios ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_goes_as_expected(path: Path) -> None:
    scenario = load_scenario(path)
    assert scenario.expect.turn, "a scenario that expects nothing tests nothing"
    replay = play(scenario)
    assert differences(replay, scenario.expect) == []
    assert replay.problem == ""
    assert not [trace for trace in replay.traces if out_of_order(trace)]


def conversation(turns: int, seed: int) -> Scenario:
    """Questions, half of them with something else: pauses, interruptions, coughs, backchannels."""
    draw = random.Random(seed)
    user, replies = list[UserSound](), list[ScriptedReply]()
    for number in range(turns):
        text = f"Please tell me all about number {number}"
        kind = ("interruption", "cough", "pause", "backchannel", "plain", "plain")[number % 6]
        paused = text.replace("me", f"me ({draw.uniform(0.1, 0.45):.3f})")
        said = UserSound(paused if kind == "pause" else text, word_s=draw.uniform(0.2, 0.35))
        delay_s = draw.uniform(0.3, 1.6)
        user.append(
            replace(said, after="reply", delay_s=delay_s) if number else replace(said, at=delay_s)
        )
        over = partial(UserSound, after="sound", delay_s=round(draw.uniform(0.6, 1.6), 2))
        match kind:
            case "interruption":
                user.append(over("No wait I meant another one"))
            case "cough":
                user.append(over(noise_s=0.24))
            case "backchannel":
                user.append(over("mhm", word_s=0.25))
        words = " ".join(draw.choices("it is a long story and nobody knows it".split(), k=14))
        replies.append(ScriptedReply(text, f"Well, here is what I know: {words}. That is all."))
    stages = Stages(tts_chunk_words=3)
    return Scenario(full_duplex=True, user=tuple(user), reply=tuple(replies), stages=stages)


@pytest.mark.slow
def test_a_conversation_is_the_same_to_the_byte_under_twenty_seeds() -> None:
    scenario = conversation(4, seed=1)
    replays = [play(scenario, seed=seed) for seed in range(20)]
    assert len({everything(replay) for replay in replays}) == 1
    outcomes = [trace.outcome for trace in replays[0].traces]
    assert {"done", "interrupted", "abandoned"} <= set(outcomes)
    assert sum(trace.counters.get("resumed", 0) for trace in replays[0].traces) == 2


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_voice_activity_off_the_event_loop_changes_nothing(path: Path) -> None:
    def elsewhere(scenario: Scenario, lexicon: Lexicon, clock: VirtualClock) -> Engines:
        engines = scripted_engines(scenario, lexicon, clock)
        return dataclasses.replace(engines, vad_runner=InlineRunner())

    scenario = load_scenario(path)
    assert everything(play(scenario, engines=elsewhere)) == everything(play(scenario))


@pytest.mark.full
def test_half_an_hour_is_the_same_to_the_byte_under_twenty_seeds() -> None:
    scenario = conversation(210, seed=2)
    first = play(scenario)
    assert first.shown[-1][0] > 1800
    assert len(first.traces) >= 200
    told = everything(first)
    assert all(everything(play(scenario, seed=seed)) == told for seed in range(1, 20))


@pytest.mark.parametrize(("ranks", "orders"), [(None, 6), ((2, 0, 1), 1)])
def test_seeds_change_the_order_of_tasks_unless_that_is_given(
    ranks: tuple[int, ...] | None, orders: int
) -> None:
    """Else replays that are the same under many seeds would prove nothing."""

    async def race(clock: VirtualClock) -> str:
        order: list[str] = []

        async def run(index: int) -> None:
            await (anyio.sleep(1.0) if ranks is None else clock.wait(1.0, ranks[index]))
            order.append("abc"[index])

        async with anyio.create_task_group() as tasks:
            for index in range(3):
                tasks.start_soon(run, index)
        return "".join(order)

    def run(seed: int) -> str:
        clock = VirtualClock(seed)
        return clock.run(race, clock)

    found = [run(seed) for seed in range(40)]
    assert found == [run(seed) for seed in range(40)]
    assert len(set(found)) == orders
    assert ranks is None or set(found) == {"bca"}


@pytest.mark.parametrize("seed", range(5))
def test_a_frame_goes_before_a_stage_that_ends_at_its_moment(seed: int) -> None:
    """So it can still take back what the stage did."""
    clock, order = VirtualClock(seed), list[str]()

    async def stage(scope: anyio.CancelScope) -> None:
        step: Any = Timed("result", 1.0)
        with scope:
            order.append(await LateRunner(clock, rank=1).call(lambda: step))

    async def player() -> None:
        speaker = LateSpeaker(16_000, clock, rank=4)
        speaker.write(np.zeros(16_960, np.float32))
        await speaker.room()
        order.append(f"room at {clock.current_time():g}")

    async def all_at_once() -> None:
        scope = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage, scope)
            tasks.start_soon(player)
            await clock.wait(1.0, 0)
            order.append("frame")
            scope.cancel()

    clock.run(all_at_once)
    assert order == ["frame", "room at 1"]


# What holds of every conversation -----------------------------------------------------------------

costs = st.one_of(st.floats(0.005, 0.3), st.sampled_from([0.02, 0.04, 0.1, 0.2]))
words = st.lists(st.sampled_from("tell me about the sky and then".split()), min_size=1, max_size=5)
answers = st.lists(st.sampled_from("yes, so it is. Well, here, 42 of them".split()), min_size=1)


@st.composite
def sounds(draw: st.DrawFn, first: bool) -> UserSound:
    delay_s = draw(st.floats(0, 2))
    after = draw(st.sampled_from(["speech", "sound", "reply"]))
    when: dict[str, Any] = {"at": 0.5} if first else {"after": after, "delay_s": delay_s}
    if not first and draw(st.booleans()):
        return UserSound(noise_s=draw(st.floats(0.01, 0.6)), **when)
    said: list[str] = list(draw(words))
    if draw(st.booleans()):
        said.insert(draw(st.integers(0, len(said))), f"({draw(st.floats(0, 0.8)):.3f})")
    return UserSound(" ".join(said), word_s=draw(st.floats(0.1, 0.4)), **when)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    later = draw(st.lists(sounds(first=False), max_size=3))
    tools = ScriptedReply("tell me", "Let me see.", "get_time", {}, "It is noon.")
    return Scenario(
        full_duplex=draw(st.booleans()),
        overlap=draw(st.sampled_from(sorted(OVERLAPS))),
        stages=Stages(
            asr_partial_s=draw(costs),
            asr_final_s=draw(costs),
            llm_prefill_s=draw(costs),
            llm_burst_s=draw(costs),
            tts_first_s=draw(costs),
            tts_chunk_words=draw(st.integers(0, 3)),
        ),
        user=(draw(sounds(first=True)), *later),
        reply=(tools, ScriptedReply(says=" ".join(draw(answers)))),
        patience_s=5.0,
    )


@pytest.mark.slow
@settings(max_examples=25)
@given(scenario=scenarios(), seed=st.integers(1, 99))
def test_whatever_is_said_nothing_shows_before_its_time(scenario: Scenario, seed: int) -> None:
    replay = play(scenario)
    assert "never comes" in replay.problem or not replay.problem
    assert everything(play(scenario, seed=seed)) == everything(replay)
    endpoints = {trace.turn: trace.marks.get(Mark.ENDPOINT) for trace in replay.traces}
    for at, event in replay.shown:
        if isinstance(event, TokenBurst | ToolCall | Clause):
            endpoint = endpoints[event.turn]
            assert endpoint is not None and at >= endpoint
    for line in turns(replay):
        said, heard = line.reply.split(), line.heard.split()
        assert said[: len(heard)] == heard
        assert not out_of_order(line.trace)
    times = [entry.time for entry in timeline(replay)]
    assert times == sorted(times)


GOOD = """
[[user]]
at = 0.5
text = "Hello"
"""


def test_a_difference_is_told_of_each_value_that_is_not_as_expected(tmp_path: Path) -> None:
    expected = """
[[reply]]
says = "Good morning to you."
[expect]
notices = ["none"]
[[expect.turn]]
heard = "Good evening to you."
max_voice_to_voice_ms = 10
counters = { tokens = 4, underruns = 1 }
[[expect.turn]]
"""
    scenario = load_scenario(write(tmp_path, GOOD + expected))
    *found, latency, underruns = differences(play(scenario), scenario.expect)
    assert found == [
        Difference(0, "notices", ["none"], []),
        Difference(0, "turns", 2, 1),
        Difference(1, "heard", "Good evening to you.", "Good morning to you."),
    ]
    assert (latency.key, latency.expected) == ("voice_to_voice_ms", "at most 10")
    assert underruns == Difference(1, "counters.underruns", 1, 0)


def test_a_conversation_that_does_not_end_is_told_as_far_as_it_went(tmp_path: Path) -> None:
    slow = GOOD + "[stages]\nllm_burst_s = 500\n"
    replay = play(load_scenario(write(tmp_path, "limit_s = 90" + slow)))
    assert replay.problem == "the conversation is not over after limit_s, 90 s"
    assert "transcript: [Hello]" in everything(replay)
    waits = GOOD + "[[user]]\nafter = 'reply'\nturn = 2\ntext = 'you'"
    replay = play(load_scenario(write(tmp_path, "patience_s = 3" + waits)))
    assert replay.problem == "you waits for the end of turn 2, which never comes"
