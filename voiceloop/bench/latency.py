"""`voiceloop bench latency`: known speech through real sessions in several modes, as one record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from msgspec import structs

from voiceloop.bench import people
from voiceloop.bench.clips import Clip
from voiceloop.bench.endings import cut_offs, endpointing, own_pauses, silences
from voiceloop.bench.interruptions import interruptions, reaction
from voiceloop.bench.machine import engines, most_memory_mb, surroundings
from voiceloop.bench.pair import without_draft
from voiceloop.bench.record import Record
from voiceloop.bench.recordings import SPEECH, read_folder
from voiceloop.bench.rotation import rotation
from voiceloop.bench.scoring import WordErrors, word_error_rate, word_errors
from voiceloop.bench.suites import SuiteName, build
from voiceloop.bench.takes import MODES, Mode, Studio, Take
from voiceloop.bench.turnfigures import (
    Outcome,
    carry_over,
    cost_ms,
    cpu_ratio,
    mode_figures,
    outcome,
    ratio,
)
from voiceloop.config import Config
from voiceloop.errors import ConfigError
from voiceloop.loading import open_engines
from voiceloop.schema import nearest
from voiceloop.startup import settled
from voiceloop.trace.record import to_json, to_perfetto
from voiceloop.types import Calibration, TurnTrace

Progress = Callable[[str], None]
FOLLOWED = "speculative"
"""The mode whose endpoint decisions the others replay."""
POLICIES = tuple(name for name, mode in MODES.items() if mode.endpoint)
INPUT = "input"
"""Stands for recordings where a suite is named."""
PEOPLE = "people"
OVERLAPS = ("sequential", "streaming", FOLLOWED)
TURNS, LIMIT_S = 24, 630.0
"""Things said, and the time for them, where nobody says how many."""
REPLY_TOKENS = 60


@dataclass(frozen=True, slots=True)
class Suite:
    """How what is said in a suite is heard and answered."""

    modes: tuple[str, ...]
    """Where nobody says in which."""
    brief: bool = False
    """Any models answer it, and theirs are as long as the longest allowed: `REPLY_TOKENS`."""
    turns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings of `turns`."""

    def settings(self, config: Config) -> Config:
        """What sessions are configured with."""
        most = min(REPLY_TOKENS, config.llm.max_new_tokens)
        llm = structs.replace(config.llm, max_new_tokens=most) if self.brief else config.llm
        return structs.replace(config, llm=llm, turns=structs.replace(config.turns, **self.turns))


SUITES: Mapping[str, Suite] = {
    "starter": Suite(tuple(MODES)),
    "questions": Suite(OVERLAPS, brief=True),
    PEOPLE: Suite((FOLLOWED,), brief=True),
    "pauses": Suite((FOLLOWED, "no-carry-over", *POLICIES)),
    "bargein": Suite((FOLLOWED,)),
    "noise": Suite(OVERLAPS),
    # No pause in what is said ends a turn.
    "additions": Suite(
        (FOLLOWED, "no-carry-over"), turns={"endpoint": "fixed", "hangover_ms": 800}
    ),
    INPUT: Suite((*OVERLAPS, *POLICIES)),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    config: Config
    suite: str = "starter"
    """One of `SUITES`."""
    turns: int | None = None
    """None is `TURNS`, or as many as `LIMIT_S` allows."""
    modes: tuple[str, ...] = ()
    """None are those of the suite."""
    seed: int = 0

    @property
    def chosen(self) -> list[Mode]:
        """The modes, in the order of `MODES`."""
        names = self.modes or SUITES[self.suite].modes
        return [mode for name, mode in MODES.items() if name in names]

    @property
    def clips(self) -> int:
        """Things to say."""
        return TURNS if self.turns is None else self.turns

    @property
    def limit_s(self) -> float:
        """No clip is begun that would probably end later than this."""
        return LIMIT_S if self.turns is None and self.suite != PEOPLE else math.inf

    @property
    def settings(self) -> Config:
        """What sessions are configured with."""
        return SUITES[self.suite].settings(self.config)


@dataclass(frozen=True, slots=True)
class Measured:
    """All takes of a clip, by mode."""

    clip: Clip
    takes: Mapping[str, Take]
    outcomes: Mapping[str, Outcome]
    words: Mapping[str, WordErrors]
    """Of each mode; nothing where nobody knows what was said."""
    whole: WordErrors | None
    """Of the recogniser that was given the clip as a whole; None likewise."""


def check(plan: Plan) -> None:
    """Raises ConfigError for a plan that cannot be carried out."""
    for name in plan.modes:
        if name not in MODES:
            near = nearest(name, MODES)
            raise ConfigError(
                f"there is no mode '{name}'",
                f"did you mean '{near}'?" if near else f"choose from: {', '.join(MODES)}",
            )
    if plan.clips < 1:
        raise ConfigError("nothing is measured in no turns", "set --turns to 1 or more")
    asr = plan.config.asr
    if plan.suite == PEOPLE and asr.engine == "whisper" and asr.model == "starter":
        raise ConfigError(
            "the starter recogniser cannot tell the words of people", "name another: --asr.model"
        )


def usual_suite(config: Config) -> SuiteName:
    """What is said where nobody says what: the starter models know their own domain alone."""
    own = config.asr.model == config.llm.target == "starter"
    return "starter" if own else "questions"


def clips(plan: Plan, folder: Path | None = None) -> Sequence[Clip]:
    """What is said: recordings in `folder`, or else the suite.

    Raises AudioError for recordings that cannot be used, ConfigError where there are to be some and
    are none, EngineError without the synthesizer that speaks a suite.
    """
    if plan.suite == PEOPLE:
        if folder is None:
            raise ConfigError(
                "no recordings of people are known",
                f"name their folder with --input, or in {SPEECH}",
            )
        return people.build(folder, plan.config, plan.seed)[: plan.turns]
    if folder is not None:
        return read_folder(folder)[: plan.turns]
    return build(cast(SuiteName, plan.suite), plan.clips, plan.seed)


def run(
    plan: Plan, folder: Path | None, progress: Progress
) -> tuple[Record, dict[str, dict[str, Any]]]:
    """Measure: the record, and for its report the traces of each mode, by file.

    Raises what `check` and `clips` raise, and what loading raises.
    """
    check(plan)
    machine = surroundings()
    progress("preparing what is said")
    said = clips(plan, folder)
    progress("loading the models")
    with settled(open_engines(plan.settings)) as loaded:
        studio = Studio(loaded, without_draft(loaded.llm), plan.settings)
        measured = measure(studio, plan, said, progress)
        calibration = loaded.llm.calibrations.get("en")  # what is said is English
    found = record(plan, measured, planned=len(said), machine=machine, calibration=calibration)
    traces = {f"perfetto-{name}.json": to_perfetto(own) for name, own in played(measured).items()}
    return found, traces


def measure(
    studio: Studio, plan: Plan, clips: Sequence[Clip], progress: Progress
) -> list[Measured]:
    """Let sessions hear `clips` in all modes of `plan`, in rotation, for as long as it allows."""
    measured: list[Measured] = []
    for index, modes in rotation(plan.chosen, len(clips), plan.limit_s):
        progress(f"{clips[index].name}: {index + 1} of {len(clips)}, in {len(modes)} modes")
        measured.append(_measure_clip(studio, clips[index], modes))
    return measured


def _measure_clip(studio: Studio, clip: Clip, modes: Sequence[Mode]) -> Measured:
    # When an interruption comes depends on the answer, so no other take's decisions fit it.
    alone = clip.interruption is not None or all(decides(mode) for mode in modes)
    decided = None if alone else studio.take(MODES[FOLLOWED], clip).events
    takes = {
        mode.name: studio.take(mode, clip, None if mode.endpoint else decided) for mode in modes
    }
    outcomes = {name: outcome(take, clip.said) for name, take in takes.items()}
    said = clip.said.text
    if said is None:
        return Measured(clip, takes, outcomes, {}, None)
    words = {name: word_errors(said, one.text) for name, one in outcomes.items()}
    return Measured(clip, takes, outcomes, words, word_errors(said, studio.whole(clip)))


def decides(mode: Mode) -> bool:
    """Whether the endpoint decisions in a mode's takes are its own, whoever takes them."""
    return bool(mode.endpoint) or mode.name == FOLLOWED


def record(
    plan: Plan,
    measured: Sequence[Measured],
    *,
    planned: int,
    machine: Mapping[str, object],
    calibration: Calibration | None = None,
) -> Record:
    """Of as many clips as were `planned`, on such a `machine`, with a language model of this
    `calibration`, if it has one."""

    def outcomes(name: str) -> list[Outcome]:
        return [one.outcomes[name] for one in measured]

    names = [mode.name for mode in plan.chosen]
    known = [one for one in measured if one.whole is not None]
    whole = [one.whole for one in known if one.whole is not None]
    modes = {
        name: mode_figures(outcomes(name), [one.words[name] for one in known], whole)
        for name in names
    }
    ratios = {
        f"{slow}_over_{FOLLOWED}": ratio(outcomes(slow), outcomes(FOLLOWED))
        if {slow, FOLLOWED} <= modes.keys()
        else None
        for slow in ("sequential", "streaming")
    }
    costs = {
        name: cost_ms(outcomes(name), outcomes(FOLLOWED))
        for name in names
        if name.startswith("no-") and FOLLOWED in modes
    }
    cpu = {
        name: cpu_ratio(outcomes(name), outcomes("streaming"))
        for name in names
        if name != "streaming" and "streaming" in modes
    }
    settings = _settings(plan) | {"turns": len(measured), "turns_planned": planned}
    found = {
        "modes": modes,
        "whole_clip_wer": word_error_rate(whole),
        "ratios": ratios,
        "cost_ms_without": costs,
        "cpu_over_streaming": cpu,
        "memory_mb": most_memory_mb(),
        **_special(plan, measured, calibration),
        "clips": [_about(one) for one in measured],
        "turns": _turns([one for one in measured if FOLLOWED in one.outcomes]),
    }
    return Record("latency", machine, settings, found)


def _settings(plan: Plan) -> dict[str, Any]:
    turns = plan.settings.turns
    names = ("endpoint", "hangover_ms", "complete_ms", "incomplete_ms")
    policy = {name: getattr(turns, name) for name in names}
    return {"suite": plan.suite, "seed": plan.seed, **engines(plan.settings), **policy}


def _special(
    plan: Plan, measured: Sequence[Measured], calibration: Calibration | None
) -> dict[str, Any]:
    """What can be said where clips have pauses, interruptions or additions."""
    found: dict[str, Any] = {}
    own = [(one.clip, one.takes[FOLLOWED]) for one in measured if FOLLOWED in one.takes]
    if any(clip.said.pauses for clip, _ in own):
        cuts = {
            mode.name: [cut for one in measured for cut in cut_offs(one.clip, one.takes[mode.name])]
            for mode in plan.chosen
            if decides(mode)
        }
        silent = [silence for clip, take in own for silence in silences(clip, take)]
        found["endpointing"] = endpointing(silent, cuts, plan.settings.turns, calibration)
    if plan.suite == PEOPLE and own:
        found["people"] = _whole_recordings([one for one in measured if FOLLOWED in one.takes])
    if any(clip.interruption for clip, _ in own):
        reactions = [reaction(clip, take) for clip, take in own]
        found["interruptions"] = interruptions([one for one in reactions if one])
    if any(clip.addition for clip, _ in own):
        found["carry_over"] = {
            mode.name: carry_over([(one.clip, one.takes[mode.name]) for one in measured])
            for mode in plan.chosen
        }
    return found


def _whole_recordings(measured: Sequence[Measured]) -> dict[str, int]:
    """Of recordings into which no silence was put, as counts: there are few of them."""
    whole = [one for one in measured if not one.clip.said.pauses]
    pauses = [own_pauses(one.clip, one.takes[FOLLOWED]) for one in whole]
    words = [one.words[FOLLOWED] for one in whole if one.words]
    return {
        "recordings": len(whole),
        "own_pauses": sum(own["pauses"] for own in pauses),
        "own_pauses_that_ended_a_turn": sum(own["ended"] for own in pauses),
        "with_text": len(words),
        "words": sum(own.words for own in words),
        "word_errors": sum(own.errors for own in words),
    }


def _about(one: Measured) -> dict[str, Any]:
    """A clip and what came of it in each mode."""
    return {
        "name": one.clip.name,
        "text": one.clip.said.text,
        "takes": {
            name: {
                "heard_as": found.text,
                "voice_to_voice_ms": found.voice_to_voice_ms,
                "endpoint_to_sound_ms": found.endpoint_to_sound_ms,
                "endpoint_delay_ms": found.endpoint_delay_ms,
                "parts_ms": dict(found.parts_ms),
                "cut_offs": found.cut_offs,
                "words": one.words[name].words if one.words else None,
                "word_errors": one.words[name].errors if one.words else None,
                "wasted_tokens": found.wasted_tokens,
                "replies_dropped": found.replies_dropped,
                "underruns": found.underruns,
                "cpu_s": round(found.cpu_s, 3),
            }
            for name, found in one.outcomes.items()
        },
    }


def _turns(measured: Sequence[Measured]) -> dict[str, Any]:
    """The median and the worst turn of `FOLLOWED`; none where none was answered."""
    answered: list[tuple[float, str, TurnTrace]] = []
    for one in measured:
        found = one.outcomes[FOLLOWED]
        if found.voice_to_voice_ms is not None and found.trace is not None:
            answered.append((found.voice_to_voice_ms, one.clip.name, found.trace))
    if not answered:
        return {}
    answered.sort(key=lambda turn: turn[0])
    chosen = {"median": answered[(len(answered) - 1) // 2], "worst": answered[-1]}
    return {
        which: {"clip": name, "trace": to_json(trace)} for which, (_, name, trace) in chosen.items()
    }


def played(measured: Sequence[Measured]) -> dict[str, list[TurnTrace]]:
    """All traces of each mode, as if its takes had been made one directly after the other."""
    return {name: _joined([one.takes[name] for one in measured]) for name in measured[0].takes}


def _joined(takes: Sequence[Take]) -> list[TurnTrace]:
    joined: list[TurnTrace] = []
    at = 0.0
    for take in takes:
        end = at
        for trace in take.traces:
            moved = _moved(trace, at - take.began, len(joined) + 1)
            moments = [*moved.marks.values(), *(span.end for span in moved.spans)]
            end = max([end, *moments])
            joined.append(moved)
        at = end
    return joined


def _moved(trace: TurnTrace, seconds: float, turn: int) -> TurnTrace:
    return replace(
        trace,
        turn=turn,
        marks={mark: at + seconds for mark, at in trace.marks.items()},
        spans=tuple(
            replace(span, start=span.start + seconds, end=span.end + seconds)
            for span in trace.spans
        ),
    )
