"""`voiceloop bench latency`: measures real sessions that hear known speech, in several modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from voiceloop.assembly.loading import open_engines
from voiceloop.bench.clips import Clip
from voiceloop.bench.command import BenchLatency, Found
from voiceloop.bench.modes import without_draft
from voiceloop.bench.record import (
    BenchRecord,
    WordErrors,
    engines,
    most_memory_mb,
    rotation,
    surroundings,
    word_error_rate,
    word_errors,
)
from voiceloop.bench.suites import SPEECH, build, of_people, read_folder
from voiceloop.bench.takes import FOLLOWED, MODES, SessionMode, Studio, Take
from voiceloop.bench.turnfigures import Outcome, cpu_ratio, mode_figures, outcome, ratio
from voiceloop.errors import ConfigError
from voiceloop.process import settled
from voiceloop.settings.config import Config
from voiceloop.settings.schema import suggestion
from voiceloop.trace.record import to_json, to_perfetto
from voiceloop.types import Calibration, TurnTrace

Progress = Callable[[str], None]
TURNS, LIMIT_S = 24, 630.0
"""Number of clips, and the time limit in seconds, if no number of clips is given."""
REPLY_TOKENS = 60
"""Maximum number of tokens in a brief reply."""
RECORDED = (
    *("voice_to_voice_ms", "endpoint_to_sound_ms", "endpoint_delay_ms", "cut_offs"),
    *("wasted_tokens", "replies_dropped", "underruns"),
)
"""Fields of an `Outcome` that the record of a clip has, too."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A clip, with its takes and their results by mode."""

    clip: Clip
    takes: Mapping[str, Take]
    outcomes: Mapping[str, Outcome]
    whole: WordErrors | None
    """Word errors of decoding the whole clip at once; None if its words are not known."""


Figures = Callable[["LatencyPlan", Sequence[Measured], Calibration | None], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite of clips, with the modes and the settings for it."""

    name: str
    clips: Callable[[LatencyPlan], Sequence[Clip]]
    modes: Sequence[SessionMode] = MODES
    """The modes that are measured if none are named."""
    brief: bool = False
    """True if replies are limited to `REPLY_TOKENS`. Without this limit, most models use all the
    tokens that they may."""
    timed: bool = True
    """True if `LIMIT_S` holds when no number of clips is given."""
    turns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Changes to the section `turns` of the settings."""
    follows: bool = True
    """True if other modes replay the endpoint decisions of `FOLLOWED`."""
    studio: type[Studio] = Studio
    figures: Figures = lambda *_: {}
    """Computes further figures from all takes and the calibration of the language model."""


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """The plan of a measurement of latency."""

    config: Config
    suite: Suite
    folder: Path | None = None
    """Folder of recordings, for the suites that need one."""
    turns: int | None = None
    """Number of clips. None means `TURNS` clips, or all recordings; fewer if these would take
    longer than `limit_s`."""
    modes: tuple[SessionMode, ...] = ()
    """Modes to measure; if empty, those of the suite."""
    seed: int = 0

    @property
    def chosen(self) -> Sequence[SessionMode]:
        """The modes to measure, in the order in which the report shows them."""
        return self.modes or self.suite.modes

    @property
    def clips(self) -> int:
        """Number of clips of a synthetic suite."""
        return TURNS if self.turns is None else self.turns

    @property
    def limit_s(self) -> float:
        """Time limit in seconds. No clip is begun that would probably exceed it."""
        return LIMIT_S if self.turns is None and self.suite.timed else math.inf

    @property
    def settings(self) -> Config:
        """The settings of the sessions."""
        config = brief(self.config) if self.suite.brief else self.config
        return structs.replace(config, turns=structs.replace(config.turns, **self.suite.turns))


def brief(config: Config) -> Config:
    """Return settings with replies of at most `REPLY_TOKENS`."""
    most = min(REPLY_TOKENS, config.llm.max_new_tokens)
    return structs.replace(config, llm=structs.replace(config.llm, max_new_tokens=most))


def _recordings(plan: LatencyPlan) -> Sequence[Clip]:
    return read_folder(folder_of(plan))[: plan.turns]


def folder_of(plan: LatencyPlan) -> Path:
    """Return the folder of recordings.

    Raises ConfigError if none is known, or if people's words are to be told by the starter's
    recogniser.
    """
    asr = plan.config.asr
    if plan.suite.name == "people" and asr.engine == "whisper" and asr.model == "starter":
        raise ConfigError(
            "the starter recogniser cannot tell the words of people", "name another: --asr.model"
        )
    if plan.folder is None:
        raise ConfigError(
            "no recordings of people are known", f"name their folder with --input, or in {SPEECH}"
        )
    return plan.folder


SUITES = {
    suite.name: suite
    for suite in (
        Suite("starter", lambda plan: build("starter", plan.clips, plan.seed)),
        Suite("questions", lambda plan: build("questions", plan.clips, plan.seed), brief=True),
        Suite("people", _recordings, (FOLLOWED,), brief=True, timed=False),
        Suite("input", _recordings),
    )
}


def usual_suite(config: Config) -> str:
    """Return the name of the default suite: `starter` if the recogniser and the language model are
    the starter's, else `questions`."""
    own = config.asr.model == config.llm.target == "starter"
    return "starter" if own else "questions"


def modes_of(names: str | None, known: Sequence[SessionMode] = MODES) -> tuple[SessionMode, ...]:
    """Return the modes that `names` lists, separated by commas; none for None. Their order is that
    of `known`. Raises ConfigError for an unknown mode."""
    by_name = {mode.name: mode for mode in known}
    wanted = list(filter(None, map(str.strip, (names or "").split(","))))
    for name in wanted:
        if name not in by_name:
            raise ConfigError(f"there is no mode '{name}'", suggestion(name, by_name))
    return tuple(mode for mode in known if mode.name in wanted)


def run(command: BenchLatency, progress: Progress) -> Found:
    """Run `voiceloop bench latency`. Raises what `carry_out` raises, and ConfigError for options
    that contradict each other or name an unknown mode."""
    if command.input and command.suite not in (None, "people"):
        raise ConfigError("recordings and a suite were named", "give --input or --suite, not both")
    name = command.suite or ("input" if command.input else usual_suite(command.settings))
    folder = of_people(command.input) if name == "people" else command.input
    modes = modes_of(command.modes)
    return carry_out(
        LatencyPlan(command.settings, SUITES[name], folder, command.turns, modes, command.seed),
        progress,
    )


def carry_out(plan: LatencyPlan, progress: Progress) -> Found:
    """Carry out `plan`. Return the record, and the traces of each mode by the name of their file.

    Raises ConfigError for a plan that cannot be carried out, AudioError for unusable recordings,
    EngineError if the synthesizer of the suite is missing, and what loading raises.
    """
    if plan.clips < 1:
        raise ConfigError("nothing is measured in no turns", "set --turns to 1 or more")
    machine = surroundings()
    progress("preparing what is said")
    said = plan.suite.clips(plan)
    progress("loading the models")
    with settled(open_engines(plan.settings)) as loaded:
        studio = plan.suite.studio(loaded, without_draft(loaded.llm), plan.settings)
        measured = measure(studio, plan, said, progress)
        calibration = loaded.llm.calibrations.get("en")  # all suites are English
    found = record(plan, measured, planned=len(said), machine=machine, calibration=calibration)
    traces = {f"perfetto-{name}.json": to_perfetto(own) for name, own in played(measured).items()}
    return found, traces


def measure(
    studio: Studio, plan: LatencyPlan, clips: Sequence[Clip], progress: Progress
) -> list[Measured]:
    """Play `clips` to sessions in all modes of `plan`, in rotation, within its time limit."""
    measured: list[Measured] = []
    for index, modes in rotation(plan.chosen, len(clips), plan.limit_s):
        progress(f"{clips[index].name}: {index + 1} of {len(clips)}, in {len(modes)} modes")
        measured.append(_measure_clip(studio, plan.suite.follows, clips[index], modes))
    return measured


def _measure_clip(
    studio: Studio, follows: bool, clip: Clip, modes: Sequence[SessionMode]
) -> Measured:
    alone = not follows or all(map(decides, modes))
    decided = None if alone else studio.take(FOLLOWED, clip).events
    takes = {
        mode.name: studio.take(mode, clip, None if mode.endpoint else decided) for mode in modes
    }
    outcomes = {name: outcome(take, clip.said) for name, take in takes.items()}
    said = clip.said.text
    whole = None if said is None else word_errors(said, studio.whole(clip))
    return Measured(clip, takes, outcomes, whole)


def decides(mode: SessionMode) -> bool:
    """Return whether `mode` decides by itself when turns end. Other modes may replay the decisions
    of `FOLLOWED`."""
    return bool(mode.endpoint) or mode == FOLLOWED


def record(
    plan: LatencyPlan,
    measured: Sequence[Measured],
    *,
    planned: int,
    machine: Mapping[str, object],
    calibration: Calibration | None = None,
) -> BenchRecord:
    """Make the record of the clips in `measured`; `planned` is the number of clips in the plan."""

    def outcomes(name: str) -> list[Outcome]:
        return [one.outcomes[name] for one in measured]

    names, fast = [mode.name for mode in plan.chosen], FOLLOWED.name
    whole = [one.whole for one in measured if one.whole is not None]
    modes = {name: mode_figures(outcomes(name), whole) for name in names}
    found = {
        "modes": modes,
        "whole_clip_wer": word_error_rate(whole),
        "ratios": {
            f"{slow}_over_{fast}": ratio(outcomes(slow), outcomes(fast))
            if {slow, fast} <= modes.keys()
            else None
            for slow in ("sequential", "streaming")
        },
        "cpu_over_streaming": {
            name: cpu_ratio(outcomes(name), outcomes("streaming"))
            for name in names
            if name != "streaming" and "streaming" in modes
        },
        "memory_mb": most_memory_mb(),
        **plan.suite.figures(plan, measured, calibration),
    }
    single = {
        "clips": [_about(one) for one in measured],
        "turns": _turns([one for one in measured if fast in one.outcomes]),
    }
    settings = _settings(plan) | {"turns": len(measured), "turns_planned": planned}
    summary = _summary(modes[fast]) if fast in modes else ""
    return BenchRecord("latency", machine, settings, found, single, summary)


def _summary(figures: Mapping[str, Any]) -> str:
    """Return in a sentence how soon the questions were answered, from the figures of a mode."""
    if not (answered := figures["answered"]):
        return "It answered none of the questions."
    median = figures["voice_to_voice_ms"]["p50"] / 1000
    middle = f" (the median of {answered})" * (answered > 1)
    return f"It answered in {median:.2f} s{middle}, from your last sound to its first sound."


def _settings(plan: LatencyPlan) -> dict[str, Any]:
    turns = plan.settings.turns
    names = ("endpoint", "hangover_ms", "complete_ms", "incomplete_ms")
    policy = {name: getattr(turns, name) for name in names}
    return {"suite": plan.suite.name, "seed": plan.seed, **engines(plan.settings), **policy}


def _about(one: Measured) -> dict[str, Any]:
    """Return the record of one clip, with its results in each mode."""
    takes = {name: _result(found) for name, found in one.outcomes.items()}
    return {"name": one.clip.name, "text": one.clip.said.text, "takes": takes}


def _result(found: Outcome) -> dict[str, Any]:
    return {
        "heard_as": found.text,
        **{name: getattr(found, name) for name in RECORDED},
        "parts_ms": dict(found.parts_ms),
        "words": found.words and found.words.words,
        "word_errors": found.words and found.words.errors,
        "cpu_s": round(found.cpu_s, 3),
    }


def _turns(measured: Sequence[Measured]) -> dict[str, Any]:
    """Return the turns of mode `FOLLOWED` with the median and the longest voice-to-voice time;
    empty if no turn was answered."""
    answered: list[tuple[float, str, TurnTrace]] = []
    for one in measured:
        found = one.outcomes[FOLLOWED.name]
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
    """Return all traces of each mode, by the mode's name. The turns of a mode are renumbered from 1
    on, because every session begins its own numbers at 1."""
    return {
        name: [
            replace(trace, turn=number)
            for number, trace in enumerate(
                (trace for one in measured for trace in one.takes[name].traces), start=1
            )
        ]
        for name in measured[0].takes
    }
