"""Measures conversations in the lab's suites and modes: pauses, interruptions, noise, additions.

    python -m lab.conversations.run --suite bargein --turns 60
    python -m lab.conversations.run --suite pauses --modes speculative,fixed-600
    python -m lab.conversations.run --preset mini --suite people --input recordings

It measures as `voiceloop bench latency` does and leaves the same record. In addition, the record
has the figures `endpointing`, `people`, `interruptions`, `carry_over` and `cost_ms_without`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal, cast, get_args

from lab.command import carry_out
from lab.conversations import people
from lab.conversations.clips import LabClip
from lab.conversations.endings import cut_offs, endpointing, own_pauses, silences
from lab.conversations.interruptions import interruptions, reaction
from lab.conversations.sentences import AdditionKind
from lab.conversations.studio import InterruptedStudio
from lab.conversations.suites import build
from voiceloop.bench import latency
from voiceloop.bench.command import Bench, Found
from voiceloop.bench.latency import LatencyPlan, Measured, Suite, folder_of
from voiceloop.bench.record import Progress, share
from voiceloop.bench.suites import of_people
from voiceloop.bench.takes import FOLLOWED, MODES, SessionMode, Take
from voiceloop.bench.turnfigures import paired_times
from voiceloop.settings.config import Config
from voiceloop.settings.flags import written
from voiceloop.turn.resources import OVERLAPS
from voiceloop.types import Calibration

WITHOUT = tuple(SessionMode(name, own) for name, own in OVERLAPS.items() if name.startswith("no-"))
POLICIES = (
    SessionMode("fixed-600", endpoint={"endpoint": "fixed", "hangover_ms": 600}),
    SessionMode("trailing-words", endpoint={"endpoint": "trailing-words"}),
    SessionMode("p-eot", endpoint={"endpoint": "p-eot"}),
)
ALL = (*MODES, SessionMode("no-draft", drafts=False), *WITHOUT, *POLICIES)
"""All modes. Those of `POLICIES` make their own endpoint decisions."""
NO_CARRY_OVER = next(mode for mode in WITHOUT if mode.name == "no-carry-over")
SuiteName = Literal["starter", "questions", "pauses", "bargein", "noise", "additions", "people"]


class Conversations(Bench, frozen=True, kw_only=True):
    """Measure conversations in the lab's suites and modes."""

    suite: SuiteName = "starter"
    """What is said."""
    input: Annotated[Path | None, written("DIR")] = None
    """Recordings of people. The default is the folder that VOICELOOP_SPEECH names."""
    turns: Annotated[int | None, written("N")] = None
    """Number of clips in every mode. The default is 24, or as many as eleven minutes allow."""
    modes: Annotated[str | None, written("A,B,…")] = None
    """Ways of running a session. By default those of the suite."""
    seed: int = 0
    """The seed. Each seed draws another suite of the same kind."""


def figures(
    plan: LatencyPlan, measured: Sequence[Measured], calibration: Calibration | None
) -> dict[str, Any]:
    """Return the figures of pauses, interruptions and additions, and costs of left-out parts."""
    found: dict[str, Any] = {"cost_ms_without": _costs(measured)}
    own = [
        (cast(LabClip, one.clip), one.takes[FOLLOWED.name])
        for one in measured
        if FOLLOWED.name in one.takes
    ]
    lab = [(clip, take) for clip, take in own if isinstance(clip, LabClip)]
    if any(clip.said.pauses for clip, _ in lab):
        cuts = {
            mode.name: [
                cut
                for one in measured
                for cut in cut_offs(cast(LabClip, one.clip), one.takes[mode.name])
            ]
            for mode in plan.chosen
            if latency.decides(mode)
        }
        silent = [silence for clip, take in lab for silence in silences(clip, take)]
        found["endpointing"] = endpointing(silent, cuts, plan.settings.turns, calibration)
    if plan.suite.name == "people" and lab:
        found["people"] = _whole_recordings(measured)
    if any(clip.interruption for clip, _ in lab):
        reactions = [reaction(clip, take) for clip, take in lab]
        found["interruptions"] = interruptions([one for one in reactions if one])
    if any(clip.addition for clip, _ in lab):
        found["carry_over"] = {
            mode.name: carry_over(
                [(cast(LabClip, one.clip), one.takes[mode.name]) for one in measured]
            )
            for mode in plan.chosen
        }
    return found


def _costs(measured: Sequence[Measured]) -> dict[str, float | None]:
    """Return what each left-out part costs: the median voice-to-voice time of the mode without the
    part, minus that of `FOLLOWED`, in ms."""
    found: dict[str, float | None] = {}
    for name in measured[0].outcomes if measured else ():
        if name.startswith("no-") and FOLLOWED.name in measured[0].outcomes:
            both = paired_times(
                [one.outcomes[name] for one in measured],
                [one.outcomes[FOLLOWED.name] for one in measured],
            )
            differences = [slow - fast for slow, fast in both]
            found[name] = round(median(differences), 2) if differences else None
    return found


def _whole_recordings(measured: Sequence[Measured]) -> dict[str, int]:
    """Count pauses, words and errors in the recordings without inserted silences."""
    whole = [
        (one, clip)
        for one in measured
        if isinstance(clip := one.clip, LabClip) and not clip.said.pauses
    ]
    pauses = [own_pauses(clip, one.takes[FOLLOWED.name]) for one, clip in whole]
    outcomes = [one.outcomes[FOLLOWED.name] for one, _ in whole]
    words = [one.words for one in outcomes if one.words]
    return {
        "recordings": len(whole),
        "own_pauses": sum(own["pauses"] for own in pauses),
        "own_pauses_that_ended_a_turn": sum(own["ended"] for own in pauses),
        "with_text": len(words),
        "words": sum(own.words for own in words),
        "word_errors": sum(own.errors for own in words),
    }


def carry_over(takes: Sequence[tuple[LabClip, Take]]) -> dict[str, Any]:
    """Return how often a first clause was kept although the user went on after a reply had begun.

    There are figures for each kind of addition, and for all kinds that leave the answer as it was.
    """
    kinds: tuple[AdditionKind, ...] = get_args(AdditionKind)
    found: dict[str, list[Take]] = {
        kind: [take for clip, take in takes if clip.addition and clip.addition.kind == kind]
        for kind in kinds
    }
    found["same answer"] = [take for kind in kinds if kind != "more" for take in found[kind]]
    return {kind: _kept(own) for kind, own in found.items() if own}


def _kept(takes: Sequence[Take]) -> dict[str, float | None]:
    def counts(name: str, own: Sequence[Take]) -> list[Take]:
        return [one for one in own if any(trace.counters.get(name) for trace in one.traces)]

    dropped = counts("replies_dropped", takes)
    kept = counts("clauses_kept", dropped)
    return {
        "clips": len(takes),
        "begun_too_early": len(dropped),
        "first_clause_kept": len(kept),
        "share": share(len(kept), len(dropped)),
    }


def _people(plan: LatencyPlan) -> Sequence[LabClip]:
    return people.build(folder_of(plan), plan.config, plan.seed)[: plan.turns]


def _suite(name: str, modes: Sequence[SessionMode], **others: Any) -> Suite:
    def clips(plan: LatencyPlan) -> Sequence[LabClip]:
        return build(name, plan.clips, plan.seed)

    return Suite(name, clips, modes, figures=figures, **others)


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("starter", latency.SUITES["starter"].clips, ALL, figures=figures),
        Suite("questions", latency.SUITES["questions"].clips, ALL, brief=True, figures=figures),
        Suite("people", _people, (FOLLOWED,), brief=True, timed=False, figures=figures),
        _suite("pauses", (FOLLOWED, NO_CARRY_OVER, *POLICIES)),
        # When an interruption comes depends on the answer, so no other take's decisions fit it.
        _suite("bargein", (FOLLOWED,), follows=False, studio=InterruptedStudio),
        _suite("noise", MODES),
        # With this hangover, no pause in the speech ends a turn.
        _suite(
            "additions",
            (FOLLOWED, NO_CARRY_OVER),
            turns={"endpoint": "fixed", "hangover_ms": 800},
        ),
    )
}


def plan_of(command: Conversations) -> LatencyPlan:
    """Return the plan of a command. Raises ConfigError for an unknown mode."""
    modes = latency.modes_of(command.modes, ALL)
    folder, config = of_people(command.input), cast(Config, command.settings)
    return LatencyPlan(config, SUITES[command.suite], folder, command.turns, modes, command.seed)


def main(argv: Sequence[str]) -> int:
    """Run the command line: measure, and print the record. Return the exit status."""

    def run(command: Conversations, progress: Progress) -> Found:
        return latency.carry_out(plan_of(command), progress)

    return carry_out(Conversations, run, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
