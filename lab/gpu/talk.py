"""Measures voice to voice of a real session whose models have real shapes, but no trained weights.

Everything but the models is the program's own: the session, its threads, the bench's room and
loudspeaker, and the figures from traces. Questions are played at real-time pace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from statistics import median

from msgspec import structs

from lab.gpu.cast import Cast
from lab.gpu.rows import Row, at_most, checked
from lab.gpu.standins import LevelVad, quiet, spoken
from voiceloop.bench.clips import Clip, ClipSpeech
from voiceloop.bench.record import rotation
from voiceloop.bench.takes import FOLLOWED, MODES, Studio
from voiceloop.bench.turnfigures import Outcome, outcome
from voiceloop.engines import Engines
from voiceloop.runner import ModelThread
from voiceloop.settings.config import Config, LlmConfig

WAYS = {
    "speculative": "as the program is",
    "streaming": "nothing begun before the end of the turn",
}
"""Descriptions of the modes that are measured, by their names in `takes`."""
MOST_MS = 200.0
"""The goal for the median voice to voice, without the wait for the endpoint."""


def talk(cast: Cast, config: LlmConfig, times: int, limit_s: float) -> Iterator[Row]:
    """Yield the rows about `times` questions in each of `WAYS`, or as many as `limit_s` allows."""
    clip = question(cast)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in WAYS}
    with ExitStack() as stack:
        threads = {
            name: stack.enter_context(ModelThread(name, lane.enter))
            for name, lane in cast.lanes.items()
        }
        engines = Engines(
            LevelVad(), cast.asr, threads["asr"], cast.llm, threads["llm"], cast.tts, threads["tts"]
        )
        studio = Studio(engines, cast.llm.plain(), structs.replace(Config(), llm=config))
        studio.take(FOLLOWED, clip)  # warms up
        modes = {mode.name: mode for mode in MODES}
        said = replace(clip.said, text=None)  # errors are counted by a package that may be absent
        for _, names in rotation([*WAYS], times, limit_s):
            for name in names:
                outcomes[name].append(outcome(studio.take(modes[name], clip), said))
    for name, own in outcomes.items():
        yield from _rows(WAYS[name], own, clip)


def question(cast: Cast) -> Clip:
    """Return a clip of the question."""
    before, sound = quiet(300), spoken(len(cast.question.split()))
    begin, end = len(before), len(before) + len(sound)
    said = ClipSpeech(cast.question, begin, end)
    pcm = before.copy()
    pcm.resize(end)
    pcm[begin:] = sound
    return Clip("question", pcm, quiet(100), said)


def _rows(way: str, outcomes: list[Outcome], clip: Clip) -> Iterator[Row]:
    answered = [one for one in outcomes if one.voice_to_voice_ms is not None]
    right = sum(one.text == clip.said.text for one in answered)
    yield checked(
        f"questions understood and answered, {way}",
        right == len(outcomes),
        f"{right} of {len(outcomes)}",
    )
    if not answered:
        return
    whole = median(one.voice_to_voice_ms or 0.0 for one in answered)
    parts = {name: median(one.parts_ms[name] for one in answered) for name in answered[0].parts_ms}
    wait = parts.pop("endpoint wait")
    beside = median(sum(one.parts_ms.values()) - one.parts_ms["endpoint wait"] for one in answered)
    times = ", ".join(f"{name} {took:.0f}" for name, took in parts.items())
    yield Row(f"voice to voice, {way}", f"{whole:.0f} ms, of which the endpoint's wait {wait:.0f}")
    yield at_most(f"  beside the endpoint's wait, {way}", beside, MOST_MS, f"{{:.0f}} ms: {times}")
