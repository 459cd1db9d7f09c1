"""Scenarios: files that are tests, the same bytes whatever the order of tasks, bad files."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import random
import time
from collections.abc import Callable
from contextlib import aclosing
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
from tests.support.reading import load_scenario
from tests.support.run import PlayedScenario, play, scripted_engines
from tests.support.runner import InlineRunner, Timed
from tests.support.scenario import Scenario, ScriptedAnswer, Stages, UserSound
from tests.support.user import FRAME, Lexicon, Piece, ScriptedMicrophone, TimedSound
from tests.traces import out_of_order
from voiceloop.engines import Engines
from voiceloop.errors import ConfigError
from voiceloop.replay.recorded import Difference, lines, records, timeline, turns
from voiceloop.trace.record import Mark, to_perfetto
from voiceloop.turn.resources import OVERLAPS
from voiceloop.types import AudioFrame, Clause, TokenBurst, ToolCall, TurnTrace

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
    user, replies = list[UserSound](), list[ScriptedAnswer]()
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
        replies.append(ScriptedAnswer(text, f"Well, here is what I know: {words}. That is all."))
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


def test_what_waits_for_the_clock_goes_after_all_else_of_the_moment() -> None:
    clock, order = VirtualClock(), list[str]()

    async def sleeper() -> None:
        await anyio.sleep(1.0)
        order.append("woken")
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        order.append("settled")
        await waiter(0.1, 3, "overdue")

    async def waiter(until: float, rank: int, name: str) -> None:
        await clock.wait(until, rank)
        order.append(f"{name} at {clock.current_time():g}")

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter, 1.0, 2, "late")
            tasks.start_soon(waiter, 1.0, 1, "early")
            tasks.start_soon(waiter, 0.5, 9, "before")
            tasks.start_soon(sleeper)
            with anyio.move_on_after(0.7):
                await clock.wait(0.9, 0)
                raise AssertionError("it was cancelled before")

    clock.run(both)
    assert order == ["before at 0.5", "woken", "settled", "early at 1", "late at 1", "overdue at 1"]


def test_every_timer_goes_off_at_its_own_moment_however_near_the_next_one_is() -> None:
    clock, found = VirtualClock(), list[float]()
    moments = [0.0, 5e-324, 0.3, 0.1 + 0.2, 1.0, math.nextafter(1.0, 2), 50_000.0]

    async def all_of_them() -> None:
        for until in reversed(moments):
            loop = asyncio.get_running_loop()
            loop.call_at(until, lambda: found.append(clock.current_time()))
        await clock.wait(80_000.0, 0)

    clock.run(all_of_them)
    assert found == sorted(moments)
    assert clock.current_time() == 80_000


def test_time_stands_still_while_a_task_waits_for_a_thread() -> None:
    clock = VirtualClock()

    async def ask() -> float:
        await anyio.to_thread.run_sync(time.sleep, 0.05)
        return anyio.current_time()

    async def both() -> float:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            tasks.start_soon(clock.wait, 1.0, 0)
            tasks.start_soon(anyio.sleep, 2.0)
            answered = await ask()
            tasks.cancel_scope.cancel()
        return answered

    assert clock.run(ask) == 0.0
    assert clock.run(both) == 0.0


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
    tools = ScriptedAnswer("tell me", "Let me see.", "get_time", {}, "It is noon.")
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
        reply=(tools, ScriptedAnswer(says=" ".join(draw(answers)))),
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


# The scripted user --------------------------------------------------------------------------------


def hear(
    *says: TimedSound,
    until: float,
    act: Callable[[ScriptedMicrophone, AudioFrame], None] = lambda microphone, frame: None,
) -> tuple[ScriptedMicrophone, list[tuple[float, AudioFrame]]]:
    """The frames that a microphone gives up to `until`, with their times; `act` follows each."""
    clock, frames = VirtualClock(), list[tuple[float, AudioFrame]]()
    microphone = ScriptedMicrophone(
        says, Lexicon(), partial(clock.wait, rank=0), silence_s=0.1, patience_s=1.0
    )

    async def listen() -> None:
        with anyio.move_on_after(until):
            async with aclosing(microphone.frames()) as heard:
                async for frame in heard:
                    frames.append((anyio.current_time(), frame))
                    act(microphone, frame)

    clock.run(listen)
    return microphone, frames


WORD = (Piece("word", 0.1),)


def test_a_frame_comes_as_its_last_sample_ends_and_holding_stops_the_clock() -> None:
    def act(microphone: ScriptedMicrophone, frame: AudioFrame) -> None:
        if frame.end == 5 * FRAME:
            microphone.hold()
            microphone.hold()

    microphone, frames = hear(TimedSound(WORD, "word", at=0.03), until=1.0, act=act)
    assert [at for at, _ in frames] == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1])
    assert [frame.start for _, frame in frames] == [FRAME * index for index in range(5)]
    assert microphone.begun[0][0] == 0.03
    sound = [float(sample) for _, frame in frames for sample in frame.pcm]
    assert sound.index(next(filter(None, sound))) == round(0.03 * 16_000)


@pytest.mark.parametrize("after", [0.0, 0.007])
def test_a_held_clock_goes_on_where_it_stood(after: float) -> None:
    held: list[float] = []

    async def talk() -> None:
        async with anyio.create_task_group() as tasks, aclosing(microphone.frames()) as frames:
            async for frame in frames:
                held.append(anyio.current_time())
                if frame.end == 2 * FRAME:
                    tasks.start_soon(hold)
                if frame.end == 4 * FRAME:
                    return

    async def hold() -> None:
        await anyio.sleep(after)
        microphone.hold()
        await anyio.sleep(0.013)
        microphone.release()

    clock = VirtualClock()
    microphone = ScriptedMicrophone(
        [TimedSound(WORD, "word", at=9.0)], Lexicon(), partial(clock.wait, rank=0),
        silence_s=0.0, patience_s=1.0,
    )  # fmt: skip
    clock.run(talk)
    assert held == pytest.approx([0.02, 0.04, 0.073, 0.093])


def test_a_sound_follows_what_it_is_to_follow() -> None:
    clause, trace = Clause(1, 0, "Well", "Well"), TurnTrace(1)

    def act(microphone: ScriptedMicrophone, frame: AudioFrame) -> None:
        shown = {15: clause, 25: trace}.get(frame.end // FRAME)
        if shown:
            microphone.notice(TokenBurst(2, (), "") if shown is trace else shown)
            microphone.notice(shown)
        if frame.end // FRAME == 40:
            microphone.notice(TurnTrace(2))

    says = (
        TimedSound(WORD, "first", at=0.0),
        TimedSound(WORD, "after speech", after="speech", delay_s=0.05),
        TimedSound(WORD, "after sound", after="sound", delay_s=0.01),
        TimedSound(WORD, "after all turns", after="reply"),
        TimedSound(WORD, "after the end of turn 1", after="reply", turn=1, delay_s=0.5),
    )
    microphone, _ = hear(*says, until=1.4, act=act)
    begun = {say.what: round(at, 6) for at, say in microphone.begun}
    assert begun == {
        "first": 0.0,
        "after speech": 0.15,
        "after sound": 0.31,
        "after all turns": 0.8,
        "after the end of turn 1": 1.0,
    }
    assert microphone.finished


def test_a_sound_that_waits_in_vain_ends_the_stream() -> None:
    says = (TimedSound(WORD, "first", at=0.0), TimedSound(WORD, "hello", after="sound", turn=3))
    microphone, frames = hear(*says, until=5.0)
    assert microphone.problem == "hello waits for a sound of turn 3, which never comes"
    assert microphone.finished
    assert len(frames) > 100, "silence follows for as long as anyone listens"


def test_a_lexicon_reads_what_it_says() -> None:
    lexicon = Lexicon()
    spoken = [Piece("a", 0.1), Piece("", 0.2), Piece("b", 0.1, misheard="c"), Piece(None, 0.05)]
    pcm = [sample for piece in spoken for sample in lexicon.sound(piece)]
    for end, final, read in (
        (len(pcm), False, ["a", "b"]),
        (len(pcm) - 800, False, ["a", "c"]),
        (len(pcm) - 800, True, ["a", "b"]),
        (len(pcm) - 1000, True, ["a"]),
    ):
        found = lexicon.read(np.array(pcm[:end], np.float32), final=final)
        assert [word.text for word in found] == read
    assert (found[0].start, found[0].end) == (0.0, 0.1)


# Files --------------------------------------------------------------------------------------------

GOOD = """
[[user]]
at = 0.5
text = "Hello"
"""
WRONG = {
    "no toml": "[[user]",
    "nobody": "",
    "user is no list: write": "user = 3",
    "a user is a table": "user = [3]",
    "did you mean 'user'": "[[usr]]\nat = 1",
    "did you mean 'turns'": GOOD + "[turn]\nhangover_ms = 3",
    "did you mean 'turns.hangover_ms'": GOOD + "[turns]\nhangover = 3",
    "turns is a section and takes no value": "turns = 3",
    "turns.hangover_ms must be": GOOD + "[turns]\nhangover_ms = 'long'",
    "did you mean 'full_duplex'": "full_duplx = true" + GOOD,
    "must be true or false": "full_duplex = 1" + GOOD,
    "did you mean 'no-prefill'": "overlap = 'no-prefil'" + GOOD,
    "choose one of: no-carry-over": "overlap = 'x'" + GOOD,
    "did you mean 'llm_burst_s'": GOOD + "[stages]\nllm_bursts = 1",
    "a number from 0 to 86400": GOOD + "[stages]\nllm_burst_s = -1",
    "user 2: text must be text": GOOD + "[[user]]\nat = 2\ntext = 3",
    "needs either words in text": "[[user]]\nat = 1\ntext = '(0.3)'",
    "needs either at, or after": "[[user]]\ntext = 'a'",
    "out of order": GOOD + "[[user]]\nat = 0.2\ntext = 'a'",
    "delay_s goes with after": GOOD + "delay_s = 1",
    "turn goes with after": GOOD + "turn = 1",
    "did you mean 'sound'": "[[user]]\nafter = 'sounds'\ntext = 'a'",
    "did you mean 'Hello'": GOOD + "misheard = { Helo = 'a' }",
    "misheard: Hello must be text": GOOD + "misheard = { Hello = 3 }",
    "misheard must be a table": GOOD + "misheard = 3",
    "go with calls": GOOD + "[[reply]]\nthen = 'a'",
    "a second one to the same words": GOOD + "[[reply]]\nto = 'a'\n[[reply]]\nto = 'A.'",
    "stage is missing": GOOD + "[[fail]]\non = 'a'",
    "'asr' or 'llm' or 'tts'": GOOD + "[[fail]]\nstage = 'vad'",
    "did you mean 'outcome'": GOOD + "[[expect.turn]]\noutcom = 'done'",
    "did you mean 'interrupted'": GOOD + "[[expect.turn]]\noutcome = 'interupted'",
    "a list of texts": GOOD + "[expect]\nnotices = 'a'",
    "'a\\nb' is no key": '"a\\nb" = 1' + GOOD,
}


@pytest.mark.parametrize("named", WRONG)
def test_a_wrong_scenario_is_refused_with_a_remedy(named: str, tmp_path: Path) -> None:
    wanted = {
        "no toml": "not valid TOML",
        "nobody": "nobody says anything",
        "user is no list: write": "must be a list of tables",
        "a user is a table": "user 1 must be a table",
    }.get(named, named)
    with pytest.raises(ConfigError) as caught:
        load_scenario(write(tmp_path, WRONG[named]))
    message, hint = caught.value.message, caught.value.hint
    assert wanted in f"{message}\n{hint}"
    assert hint and "\n" not in message + hint


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
