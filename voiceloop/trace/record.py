"""The record of one turn: how it is collected, its latencies, and its file formats.

A `Recorder` collects marks, counters and spans while the turn runs. Its `TurnTrace` is the only
source of the console's latency line, the waterfall, the JSON and the Perfetto file. This module
never reads a clock: its callers pass times, in seconds of the event loop's clock. It knows neither
what the stages do nor how they are drawn.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from voiceloop.outputs import MAKER
from voiceloop.types import Outcome, StageSpan, TurnTrace


class Mark(StrEnum):
    """Moments of a turn. A trace has those that happened."""

    SPEECH_START = "speech_start"
    """The user's first voiced sample."""
    FIRST_PARTIAL = "first_partial"
    """The first transcript with a word in it."""
    PREFILL_START = "prefill_start"
    """The start of the first prefill of committed words."""
    SPEECH_END = "speech_end"
    """The user's last voiced sample, not the moment at which silence was detected."""
    PAUSE = "pause"
    """The first detection of silence after `speech_end`."""
    ENDPOINT = "endpoint"
    """The decision that the user has finished."""
    TRANSCRIPT_FINAL = "transcript_final"
    """The moment at which every sample before the endpoint has been decoded."""
    FIRST_BURST = "first_burst"
    """The target model's first token of the reply."""
    FIRST_CLAUSE = "first_clause"
    """The moment at which the reply's first clause is complete and goes to synthesis."""
    FIRST_SYNTHESIS = "first_synthesis"
    """The first audio from the synthesizer."""
    FIRST_SOUND = "first_sound"
    """The time at which the reply's first audible sample is played. Silence before it does not
    count."""
    REPLY_END = "reply_end"
    """The reply's last token."""
    SYNTHESIS_END = "synthesis_end"
    """The last audio from the synthesizer."""
    SOUND_END = "sound_end"
    """The time at which the last sample of the reply was played. If the reply was cut off, this is
    the end of its fade."""


class Lane(StrEnum):
    """The stages from the microphone to the speaker. In a picture each has a lane."""

    MIC = "mic"
    VAD = "vad"
    ASR = "asr"
    PREFILL = "llm-prefill"
    REPLY = "reply"
    """Whole attempts to answer, including dropped ones, and the tools that voiceloop ran."""
    DECODE = "llm-decode"
    TTS = "tts"
    SPEAKER = "speaker"


REPLY, DROPPED_REPLY, TOOL = "reply", "dropped reply", "tool"
"""Names of the spans in `Lane.REPLY`. After `TOOL` comes a space and the name of the tool."""

LANE_OF = {
    **dict.fromkeys((Mark.SPEECH_START, Mark.SPEECH_END), Lane.MIC),
    **dict.fromkeys((Mark.PAUSE, Mark.ENDPOINT), Lane.VAD),
    **dict.fromkeys((Mark.FIRST_PARTIAL, Mark.TRANSCRIPT_FINAL), Lane.ASR),
    Mark.PREFILL_START: Lane.PREFILL,
    **dict.fromkeys((Mark.FIRST_BURST, Mark.FIRST_CLAUSE, Mark.REPLY_END), Lane.DECODE),
    **dict.fromkeys((Mark.FIRST_SYNTHESIS, Mark.SYNTHESIS_END), Lane.TTS),
    **dict.fromkeys((Mark.FIRST_SOUND, Mark.SOUND_END), Lane.SPEAKER),
}
"""Lane in which each mark is drawn."""


class Recorder:
    """A collector of the record of one turn."""

    def __init__(self, turn: int) -> None:
        self.turn = turn
        self.speech_end: int | None = None
        """Index in the stream after the user's last voiced sample; None if no voice was heard."""
        self.seed: int | None = None
        """Seed of the noise with which tokens were sampled; None without such noise."""
        self._marks: dict[Mark, float] = {}
        self._counters: Counter[str] = Counter()
        self._spans: list[StageSpan] = []

    def mark(self, mark: Mark, now: float) -> None:
        """Record that `mark` happened at `now`. Only the first time counts."""
        self._marks.setdefault(mark, now)

    def at(self, mark: Mark) -> float | None:
        """Return when `mark` happened; None if it has not."""
        return self._marks.get(mark)

    def retract(self, *marks: Mark) -> None:
        """Forget marks of work that was taken back before anybody saw or heard it."""
        for mark in marks:
            self._marks.pop(mark, None)

    def count(self, counter: str, amount: int = 1) -> None:
        """Add to a counter, such as `drafted`, `accepted` or `underruns`."""
        self._counters[counter] += amount

    def span(self, lane: Lane, name: str, start: float, end: float, **args: float | str) -> None:
        """Record that a stage worked from `start` to `end`. Raises ValueError if `end` is before
        `start`.

        Two of the `args` are drawn as counters: `words`, the number of words recognised so far, and
        `tokens`, the number of tokens of this piece of work.
        """
        if end < start:
            raise ValueError(f"{lane} {name} ends at {end}, before it starts at {start}")
        self._spans.append(StageSpan(lane, name, start, end, args))

    def trace(self, outcome: Outcome, heard: str = "") -> TurnTrace:
        """Return the record so far, with the turn's outcome and the heard part of the reply."""
        marks = {str(mark): self._marks[mark] for mark in Mark if mark in self._marks}
        return TurnTrace(
            self.turn,
            marks,
            dict(self._counters),
            heard,
            outcome,
            tuple(self._spans),
            self.speech_end,
            self.seed,
        )


# Latency ------------------------------------------------------------------------------------------

PARTS: Mapping[str, tuple[Mark, str]] = {
    "endpoint wait": (Mark.ENDPOINT, "turns"),
    "asr": (Mark.TRANSCRIPT_FINAL, "asr"),
    "llm": (Mark.FIRST_CLAUSE, "llm"),
    "tts": (Mark.FIRST_SYNTHESIS, "tts"),
    "output": (Mark.FIRST_SOUND, "devices"),
}
"""Parts of the voice-to-voice latency, in order. Each has the mark that ends it, and the name of
the part of voiceloop that causes it."""


def _microseconds(trace: TurnTrace, earlier: Mark, later: Mark) -> int | None:
    """Return the microseconds between two marks; None if one is missing or they are reversed."""
    if earlier not in trace.marks or later not in trace.marks:
        return None
    elapsed = round((trace.marks[later] - trace.marks[earlier]) * 1e6)
    return elapsed if elapsed >= 0 else None


def _milliseconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000


def voice_to_voice_ms(trace: TurnTrace) -> float | None:
    """Return the ms from the user's last voiced sample to the first audible one of the reply."""
    return _milliseconds(_microseconds(trace, Mark.SPEECH_END, Mark.FIRST_SOUND))


def endpoint_to_sound_ms(trace: TurnTrace) -> float | None:
    """Return the ms from the endpoint to the first audible sample of the reply."""
    return _milliseconds(_microseconds(trace, Mark.ENDPOINT, Mark.FIRST_SOUND))


def parts_ms(trace: TurnTrace) -> dict[str, float] | None:
    """Return the ms of each part of the voice-to-voice latency; None if there is no such latency.

    The parts have the order of `PARTS`. The first part begins at `speech_end`, and each other part
    where the one before it ends. A part ends at its own mark (`PARTS`), but not after
    `first_sound`. A part lasts 0 ms if its own mark is missing, or is earlier than its beginning
    because stages overlap. So each moment of the wait belongs to exactly one part. The parts are
    whole microseconds, and their sum is exactly the latency.
    """
    whole = _microseconds(trace, Mark.SPEECH_END, Mark.FIRST_SOUND)
    if whole is None:
        return None
    parts: dict[str, float] = {}
    reached = 0
    for name, (mark, _) in PARTS.items():
        done = min(max(reached, _microseconds(trace, Mark.SPEECH_END, mark) or 0), whole)
        parts[name] = (done - reached) / 1000
        reached = done
    return parts


def percentiles(
    values: Sequence[float], points: Sequence[int] = (50, 95)
) -> dict[str, float | None]:
    """Return percentiles of `values` by name, such as `p50`. Without values, each is None.

    Percentiles are interpolated linearly between order statistics (Hyndman and Fan 1996, type 7).
    """
    names = [f"p{point}" for point in points]
    if not values:
        return dict.fromkeys(names)
    found = np.percentile(values, points)
    return {name: float(value) for name, value in zip(names, found, strict=True)}


def latency_entry(trace: TurnTrace) -> tuple[str, str] | None:
    """Return two texts for a console: the voice-to-voice latency of a turn, and the parts of it
    with the acceptance of draft tokens.

    `drafts 3.1 of 4` means that in the mean round 3.1 of 4 draft tokens were accepted. Parts
    shorter than half a millisecond are left out. The first text is empty if the turn has no
    latency. If both texts would be empty, None is returned.
    """
    whole, parts = voice_to_voice_ms(trace), parts_ms(trace) or {}
    shown = [(name.removesuffix(" wait"), ms) for name, ms in parts.items() if ms >= 0.5]
    pieces = [f"{name} {ms:.0f}" for name, ms in shown]
    rounds = [span.args for span in trace.spans if span.args.get("drafted")]
    if rounds:
        drafted, accepted = (
            sum(float(one.get(name, 0)) for one in rounds) / len(rounds)
            for name in ("drafted", "accepted")
        )
        pieces.append(f"drafts {round(accepted, 1):g} of {round(drafted, 1):g}")
    latency = (
        "" if whole is None else f"{whole:.0f} ms" if whole < 10_000 else f"{whole / 1000:.1f} s"
    )
    return (latency, " · ".join(pieces)) if latency or pieces else None


# JSON ---------------------------------------------------------------------------------------------


def _moments(trace: TurnTrace) -> list[float]:
    ends = [moment for span in trace.spans for moment in (span.start, span.end)]
    return [*trace.marks.values(), *ends]


def _origin(trace: TurnTrace) -> float:
    """Return the turn's start: its first voiced sample, or the earliest moment if there is none."""
    return trace.marks.get(Mark.SPEECH_START, min(_moments(trace), default=0.0))


def to_json(trace: TurnTrace) -> dict[str, Any]:
    """Return the trace as plain values. Marks and spans are in seconds from the turn's start."""
    origin = _origin(trace)
    return {
        "turn": trace.turn,
        "outcome": trace.outcome,
        "heard": trace.heard,
        "voice_to_voice_ms": voice_to_voice_ms(trace),
        "endpoint_to_sound_ms": endpoint_to_sound_ms(trace),
        "parts_ms": parts_ms(trace),
        "marks": {mark: round(at - origin, 6) for mark, at in trace.marks.items()},
        "counters": dict(trace.counters),
        "seed": trace.seed,
        "spans": [
            {
                "lane": span.lane,
                "name": span.name,
                "start": round(span.start - origin, 6),
                "end": round(span.end - origin, 6),
                **({"args": dict(span.args)} if span.args else {}),
            }
            for span in trace.spans
        ],
    }


# Perfetto -----------------------------------------------------------------------------------------

_PID = 1
_ROWS = 100
"""Number of thread ids that each lane has. Each thread is a row, and spans that overlap are drawn
in different rows."""


def to_perfetto(traces: Sequence[TurnTrace]) -> dict[str, Any]:
    """Return the traces in Chrome's trace event format, for ui.perfetto.dev and chrome://tracing.

    Each lane is a thread, with its spans as complete events and its marks as instants. Each turn is
    an asynchronous event, with the parts of its latency inside. Words and tokens are counters.
    Times are in microseconds from the first moment of all traces, and events are sorted by time.
    """
    traces = [trace for trace in traces if _moments(trace)]
    origin = min((moment for trace in traces for moment in _moments(trace)), default=0.0)

    def event(phase: str, name: str, at: float, **rest: object) -> dict[str, Any]:
        moment = round((at - origin) * 1e6)
        return {"ph": phase, "name": name, "ts": moment, "pid": _PID, "tid": 0, **rest}

    events: list[dict[str, Any]] = []
    for trace in traces:
        events += _turn_events(trace, event)
    rows: defaultdict[Lane, list[float]] = defaultdict(lambda: [-math.inf])
    spans = [(span, trace.turn) for trace in traces for span in trace.spans]
    for span, turn in sorted(spans, key=lambda item: item[0].start):
        lane, ends = Lane(span.lane), rows[Lane(span.lane)]
        row = next((i for i, end in enumerate(ends) if end <= span.start), len(ends))
        ends[row : row + 1] = [span.end]
        complete = event("X", span.name, span.start, cat=lane, args={"turn": turn, **span.args})
        complete["dur"] = round((span.end - origin) * 1e6) - complete["ts"]
        events.append(complete | {"tid": _tid(lane, row)})
    # Sorting is stable, so at one moment a part still ends before the next begins.
    return {
        "traceEvents": _metadata(rows) + sorted(events, key=lambda item: item["ts"]),
        "displayTimeUnit": "ms",
    }


def _tid(lane: Lane, row: int = 0) -> int:
    return (1 + list(Lane).index(lane)) * _ROWS + row


def _turn_events(trace: TurnTrace, event: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of a turn: itself, the parts of its latency, its marks and counters."""
    moments = _moments(trace)
    start, end = min(moments), max(moments)
    same = {"cat": "turn", "id": trace.turn}
    about = {"outcome": trace.outcome, "heard": trace.heard, **trace.counters}
    events = [event("b", f"turn {trace.turn}", start, **same, args=about)]
    at = trace.marks.get(Mark.SPEECH_END, start)
    for name, part in (parts_ms(trace) or {}).items():
        events.append(event("b", name, at, **same))
        at += part / 1000
        events.append(event("e", name, at, **same))
    events.append(event("e", f"turn {trace.turn}", max(at, end), **same))
    for mark, moment in trace.marks.items():
        tid = _tid(LANE_OF[Mark(mark)])
        events.append(event("i", mark, moment, s="t", args={"turn": trace.turn}) | {"tid": tid})
    counted = {"words": 0.0, "tokens": 0.0}
    events += [event("C", name, start, args={name: 0}) for name in counted]
    for span in sorted(trace.spans, key=lambda span: span.end):
        for name in counted.keys() & span.args.keys():
            counted[name] = float(span.args[name]) + (counted[name] if name == "tokens" else 0)
            events.append(event("C", name, span.end, args={name: counted[name]}))
    return events


def _metadata(rows: Mapping[Lane, Sequence[float]]) -> list[dict[str, Any]]:
    """Return the events that name and sort the process and its threads."""

    def about(what: str, tid: int, **args: object) -> dict[str, Any]:
        return {"ph": "M", "name": what, "ts": 0, "pid": _PID, "tid": tid, "args": args}

    events = [about("process_name", 0, name=MAKER), about("thread_name", 0, name="turns")]
    for lane in Lane:
        for row in range(len(rows.get(lane, [0.0]))):
            tid = _tid(lane, row)
            events.append(about("thread_name", tid, name=f"{lane} ({row + 1})" if row else lane))
            events.append(about("thread_sort_index", tid, sort_index=tid))
    return events
