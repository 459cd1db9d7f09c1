"""From takes of known speech to figures: latency with its parts, endpoints, words, waste.

What a turn took is counted from the true last voiced sample where it is known, not from what the
voice detector took for it. Knows neither engines nor clocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, get_args

from voiceloop.asr.turns import TurnEnded
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.clips import Clip, Said
from voiceloop.bench.partials import Behind, behind, partial_figures
from voiceloop.bench.record import share, spread
from voiceloop.bench.scoring import WordErrors, endpoint_delay, false_cutoffs
from voiceloop.bench.sentences import AdditionKind
from voiceloop.bench.takes import Take
from voiceloop.trace.record import Mark, endpoint_to_sound_ms, parts_ms, voice_to_voice_ms
from voiceloop.types import TurnTrace


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of something said once, in one mode.

    Its fields are the columns of the report.
    """

    voice_to_voice_ms: float | None
    """From the true last voiced sample to the first audible sample of the reply."""
    endpoint_to_sound_ms: float | None
    endpoint_delay_ms: float | None
    """From the true last voiced sample to the decision; None where that was missed."""
    parts_ms: Mapping[str, float]
    """Of `voice_to_voice_ms`."""
    cut_offs: int
    """Endpoints before the true end; where nobody knows that, those followed by another."""
    text: str
    """What was understood, all turns together."""
    retracted: int
    """Committed words that the final decode did not confirm."""
    replies_dropped: int
    wasted_tokens: int
    underruns: int
    cpu_s: float
    trace: TurnTrace | None
    """Of the turn that was answered last, with the true end of speech."""
    partials: tuple[Behind, ...]
    """Of all its turns."""


def outcome(take: Take, said: Said) -> Outcome:
    """What came of a take in which `said` was said.

    Where nobody knows when that ended, the detected end stands in for it. What came after an
    interruption is left out.
    """
    ends = [one for one in take.events if isinstance(one, TurnEnded)]
    until = math.inf if take.interrupted is None else take.interrupted
    over = take.began + until / SPEECH_RATE
    answered = [one for one in take.traces if one.marks.get(Mark.FIRST_SOUND, math.inf) < over]
    trace = answered[-1] if answered else None
    if said.end is None or said.pauses is None:
        cut_off = max(0, len(ends) - 1)
        delay = ends[-1].sample - ends[-1].speech_end if ends else None
    else:
        decided = [end.sample for end in ends]
        cut_off = len(false_cutoffs(said, decided))
        delay = endpoint_delay(said, decided)
        if trace is not None:
            true = take.began + said.end / SPEECH_RATE
            trace = replace(trace, marks={**trace.marks, Mark.SPEECH_END: true})
    last_turn = math.inf if take.interrupted is None or trace is None else trace.turn
    finals = sorted(
        (one for one in take.transcripts if one.turn <= last_turn), key=lambda one: one.turn
    )

    def total(name: str) -> int:
        return round(sum(one.counters.get(name, 0) for one in take.traces))

    return Outcome(
        voice_to_voice_ms(trace) if trace else None,
        endpoint_to_sound_ms(trace) if trace else None,
        None if delay is None else delay / SPEECH_RATE * 1000,
        (parts_ms(trace) if trace else None) or {},
        cut_off,
        " ".join(one.text for one in finals if one.text),
        total("retracted_words"),
        total("replies_dropped"),
        total("wasted_tokens"),
        total("underruns"),
        take.cpu_s,
        trace,
        tuple(behind(take)),
    )


def mode_figures(
    outcomes: Sequence[Outcome], words: Sequence[WordErrors], whole: Sequence[WordErrors]
) -> dict[str, Any]:
    """Figures of one mode.

    `words` are the errors where what was said is known, `whole` those of the same recordings
    decoded as a whole.
    """
    voice = [one.voice_to_voice_ms for one in outcomes if one.voice_to_voice_ms is not None]
    sums = [
        abs(sum(one.parts_ms.values()) - one.voice_to_voice_ms)
        for one in outcomes
        if one.voice_to_voice_ms is not None
    ]
    said, wrong = sum(one.words for one in words), sum(one.errors for one in words)
    names = next((tuple(one.parts_ms) for one in outcomes if one.parts_ms), ())
    return {
        "turns": len(outcomes),
        "answered": len(voice),
        "voice_to_voice_ms": spread(voice),
        "endpoint_to_sound_ms": spread(one.endpoint_to_sound_ms for one in outcomes),
        "endpoint_delay_ms": spread(one.endpoint_delay_ms for one in outcomes),
        "parts_ms": {name: spread(one.parts_ms.get(name) for one in outcomes) for name in names},
        "parts_off_by_ms": round(max(sums, default=0.0), 3),
        "false_cutoffs": share(sum(one.cut_offs > 0 for one in outcomes), len(outcomes)),
        "missed_endpoints": sum(one.endpoint_delay_ms is None for one in outcomes),
        "wer": share(wrong, said),
        "words": said,
        "word_errors": wrong,
        "tail_words_lost": sum(
            max(0, own.tail - other.tail) for own, other in zip(words, whole, strict=True)
        ),
        "finals_that_differ": share(sum(one.retracted > 0 for one in outcomes), len(outcomes)),
        "replies_dropped": sum(one.replies_dropped for one in outcomes),
        "wasted_tokens": sum(one.wasted_tokens for one in outcomes),
        "cpu_s_per_turn": round(median(one.cpu_s for one in outcomes), 3) if outcomes else None,
        "underruns": sum(one.underruns for one in outcomes),
        "partials": partial_figures([partial for one in outcomes for partial in one.partials]),
    }


def carry_over(takes: Sequence[tuple[Clip, Take]]) -> dict[str, Any]:
    """What became of first clauses where the user went on after a reply had been begun.

    By kind of addition, and for all that leave the answer as it was.
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


def paired(slow: Sequence[Outcome], fast: Sequence[Outcome]) -> list[tuple[float, float]]:
    """Voice-to-voice times of the same things said, where both were answered."""
    return [
        (one.voice_to_voice_ms, other.voice_to_voice_ms)
        for one, other in zip(slow, fast, strict=True)
        if one.voice_to_voice_ms is not None and other.voice_to_voice_ms is not None
    ]


def ratio(slow: Sequence[Outcome], fast: Sequence[Outcome]) -> float | None:
    """How many times as long the median of `slow` is as that of `fast`."""
    both = paired(slow, fast)
    if not both:
        return None
    return round(median(one for one, _ in both) / median(other for _, other in both), 3)


def cpu_ratio(one: Sequence[Outcome], other: Sequence[Outcome]) -> float | None:
    """How many times the processor time of `other` the same things said take in `one`."""
    both = [a.cpu_s / b.cpu_s for a, b in zip(one, other, strict=True) if b.cpu_s]
    return round(median(both), 3) if both else None


def cost_ms(without: Sequence[Outcome], whole: Sequence[Outcome]) -> float | None:
    """What leaving something out costs: the median difference between the same things said."""
    both = paired(without, whole)
    return round(median(one - other for one, other in both), 2) if both else None
