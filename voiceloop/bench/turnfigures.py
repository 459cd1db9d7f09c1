"""Computes figures from takes of known speech: latency with its parts, endpoints, words, waste.

Latency is counted from the true last voiced sample. If it is not known, the sample that the speech
detector found is used instead. This module knows neither engines nor clocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import median
from typing import Any, NamedTuple

from voiceloop.asr.turns import TurnEnded
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.bench.clips import ClipSpeech
from voiceloop.bench.record import WordErrors, share, spread, word_errors
from voiceloop.bench.takes import Take
from voiceloop.trace.record import Lane, Mark, endpoint_to_sound_ms, parts_ms, voice_to_voice_ms
from voiceloop.types import TurnTrace

MISSED_MS = 1500.0
"""An endpoint counts as missed if it comes more than this many ms after the end of speech."""


class Behind(NamedTuple):
    """Delays of a partial transcript behind the end of its audio, in milliseconds."""

    begun: float
    """Delay of the start of its decode. If this is longer than a window of the VAD, audio had to
    wait for the recogniser."""
    arrived: float
    """Delay of the transcript itself."""
    replaced: float | None
    """Delay until the next transcript arrives; None for the last one of the turn."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one clip in one mode.

    Most of its fields are also keys of the clip in the record.
    """

    voice_to_voice_ms: float | None
    """Milliseconds from the true last voiced sample to the first audible sample of the reply."""
    endpoint_to_sound_ms: float | None
    endpoint_delay_ms: float | None
    """Milliseconds from the true last voiced sample to the endpoint; None if it was missed."""
    parts_ms: Mapping[str, float]
    """The parts of `voice_to_voice_ms`."""
    cut_offs: int
    """Endpoints before the true end of speech; if that is not known, all endpoints but the last."""
    text: str
    """The final transcripts of all turns, joined."""
    words: WordErrors | None
    """The word errors of `text`; None if the words of the clip are not known."""
    retracted: int
    """Committed words that the final decode did not confirm."""
    replies_dropped: int
    wasted_tokens: int
    underruns: int
    cpu_s: float
    trace: TurnTrace | None
    """Trace of the last turn that was answered, with the true end of speech if that is known."""
    partials: tuple[Behind, ...]
    """Delays of the partial transcripts of all turns."""


def outcome(take: Take, said: ClipSpeech) -> Outcome:
    """Compute the results of a take in which `said` was said.

    If the true end of speech is not known, the detected end is used. The trace and the text leave
    out turns after an interruption.
    """
    until = math.inf if take.interrupted is None else take.interrupted
    over = take.began + until / SPEECH_RATE
    answered = [one for one in take.traces if one.marks.get(Mark.FIRST_SOUND, math.inf) < over]
    trace = answered[-1] if answered else None
    cut_offs, delay = _endpoints(take, said)
    if trace is not None and said.end is not None:
        true = take.began + said.end / SPEECH_RATE
        trace = replace(trace, marks={**trace.marks, Mark.SPEECH_END: true})
    last_turn = math.inf if take.interrupted is None or trace is None else trace.turn
    finals = sorted(
        (one for one in take.transcripts if one.turn <= last_turn), key=lambda one: one.turn
    )

    text = " ".join(one.text for one in finals if one.text)

    def total(name: str) -> int:
        return round(sum(one.counters.get(name, 0) for one in take.traces))

    return Outcome(
        voice_to_voice_ms(trace) if trace else None,
        endpoint_to_sound_ms(trace) if trace else None,
        None if delay is None else delay / SPEECH_RATE * 1000,
        (parts_ms(trace) if trace else None) or {},
        cut_offs,
        text,
        None if said.text is None else word_errors(said.text, text),
        total("retracted_words"),
        total("replies_dropped"),
        total("wasted_tokens"),
        total("underruns"),
        take.cpu_s,
        trace,
        tuple(behind(take)),
    )


def _endpoints(take: Take, said: ClipSpeech) -> tuple[int, int | None]:
    """Return the number of endpoints before the end of speech, and the delay of the first endpoint
    after it, in samples. The delay is None if the first endpoint after the end of speech comes
    later than `MISSED_MS`, or if there is none. If the true end of speech is not known, only the
    last endpoint counts as one after it, with its delay after the detected end."""
    ends = [event for event in take.events if isinstance(event, TurnEnded)]
    if said.end is None:
        return max(0, len(ends) - 1), ends[-1].sample - ends[-1].speech_end if ends else None
    delays = [end.sample - said.end for end in ends]
    delay = min((delay for delay in delays if delay >= 0), default=math.inf)
    cut_offs = sum(delay < 0 for delay in delays)
    return cut_offs, int(delay) if delay <= samples(MISSED_MS) else None


def behind(take: Take) -> Iterator[Behind]:
    """Yield the delays of all partial transcripts of a take.

    The delay of a transcript is the time since the last sample of its audio was recorded. It is
    least when the transcript arrives, and greatest just before the next one arrives.
    """
    for trace in take.traces:
        decodes = sorted(
            (span for span in trace.spans if span.lane == Lane.ASR), key=lambda span: span.end
        )
        for span, after in zip_longest(decodes, decodes[1:]):
            if span.name == "partial":
                recorded = take.began + float(span.args["until_s"])
                replaced = None if after is None else 1000 * (after.end - recorded)
                begun, arrived = 1000 * (span.start - recorded), 1000 * (span.end - recorded)
                yield Behind(begun, arrived, replaced)


def mode_figures(outcomes: Sequence[Outcome], whole: Sequence[WordErrors]) -> dict[str, Any]:
    """Return the figures of one mode. `whole` are the word errors when each of the clips with known
    words is decoded in one piece."""
    answered = [one for one in outcomes if one.voice_to_voice_ms is not None]
    off_by = [abs(sum(one.parts_ms.values()) - (one.voice_to_voice_ms or 0)) for one in answered]
    words = [one.words for one in outcomes if one.words is not None]
    said, wrong = sum(one.words for one in words), sum(one.errors for one in words)
    lost = [max(0, own.tail - other.tail) for own, other in zip(words, whole, strict=True)]
    names = next((tuple(one.parts_ms) for one in outcomes if one.parts_ms), ())
    partials = [partial for one in outcomes for partial in one.partials]
    return {
        "turns": len(outcomes),
        "answered": len(answered),
        "voice_to_voice_ms": spread(one.voice_to_voice_ms for one in outcomes),
        "endpoint_to_sound_ms": spread(one.endpoint_to_sound_ms for one in outcomes),
        "endpoint_delay_ms": spread(one.endpoint_delay_ms for one in outcomes),
        "parts_ms": {name: spread(one.parts_ms.get(name) for one in outcomes) for name in names},
        "parts_off_by_ms": round(max(off_by, default=0.0), 3),
        "false_cutoffs": share(sum(one.cut_offs > 0 for one in outcomes), len(outcomes)),
        "missed_endpoints": sum(one.endpoint_delay_ms is None for one in outcomes),
        "wer": share(wrong, said),
        "words": said,
        "word_errors": wrong,
        "tail_words_lost": sum(lost),
        "finals_that_differ": share(sum(one.retracted > 0 for one in outcomes), len(outcomes)),
        "replies_dropped": sum(one.replies_dropped for one in outcomes),
        "wasted_tokens": sum(one.wasted_tokens for one in outcomes),
        "cpu_s_per_turn": round(median(one.cpu_s for one in outcomes), 3) if outcomes else None,
        "underruns": sum(one.underruns for one in outcomes),
        "partials": {
            "partials": len(partials),
            "backlog_ms": spread(one.begun for one in partials),
            "behind_ms": spread(one.arrived for one in partials),
            "before_the_next_ms": spread(one.replaced for one in partials),
        },
    }


def paired_times(slow: Sequence[Outcome], fast: Sequence[Outcome]) -> list[tuple[float, float]]:
    """Return the voice-to-voice times of each clip in `slow` and in `fast`, as pairs in ms. Clips
    that were not answered in both are left out."""
    return [
        (one.voice_to_voice_ms, other.voice_to_voice_ms)
        for one, other in zip(slow, fast, strict=True)
        if one.voice_to_voice_ms is not None and other.voice_to_voice_ms is not None
    ]


def ratio(slow: Sequence[Outcome], fast: Sequence[Outcome]) -> float | None:
    """Return the median voice-to-voice time of `slow` divided by that of `fast`.

    Only clips that were answered in both count. None if there is no such clip.
    """
    both = paired_times(slow, fast)
    if not both:
        return None
    return round(median(one for one, _ in both) / median(other for _, other in both), 3)


def cpu_ratio(one: Sequence[Outcome], other: Sequence[Outcome]) -> float | None:
    """Return the median ratio of processor times over the clips: `one` divided by `other`. None
    without clips."""
    both = [a.cpu_s / b.cpu_s for a, b in zip(one, other, strict=True) if b.cpu_s]
    return round(median(both), 3) if both else None
