"""The result of a replay as text or plain values: its timeline, its turns, and the differences.

The timeline is sorted by time, then lane, then turn, then the order within the turn. So it does not
depend on the order of stages that worked at the same moment. This module knows neither files nor
how a replay is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from voiceloop.terminal import printable
from voiceloop.trace.record import LANE_OF, Lane, Mark, endpoint_to_sound_ms, voice_to_voice_ms
from voiceloop.types import Clause, Event, Notice, TokenBurst, ToolCall, Transcript, TurnTrace
from voiceloop.view.transcript import Exchanges, call_text

NOBODY = 0
"""Turn number of events that belong to no turn."""
SESSION = "session"
"""Lane of events that belong to no stage."""
_LANES = [*map(str, Lane), SESSION]


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay, or of a recorded conversation. Times are seconds since it began."""

    shown: tuple[tuple[float, Event], ...]
    """The events that the session showed, each with its time, in order."""

    @property
    def traces(self) -> list[TurnTrace]:
        """Records of the turns, in order of their numbers."""
        traces = [event for _, event in self.shown if isinstance(event, TurnTrace)]
        return sorted(traces, key=lambda trace: trace.turn)


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A line of the timeline."""

    time: float
    """Seconds since the replay began, to the microsecond."""
    lane: str
    turn: int
    what: str
    ms: float | None = None
    """Length in ms of a piece of work that begins at `time`; None for an event without a length."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn that is over, with the data of its line of text."""

    trace: TurnTrace
    transcript: str
    reply: str


@dataclass(frozen=True, slots=True)
class Difference:
    """An expected value that the replay did not give, and the actual one."""

    turn: int
    key: str
    expected: object
    was: object


def timeline(replay: ReplayResult) -> list[TimelineEntry]:
    """Return everything that happened, in order."""
    entries = [entry for at, event in replay.shown for entry in _entries(at, event)]
    return sorted(entries, key=lambda e: (e.time, _LANES.index(e.lane), e.turn))


def _entry(at: float, lane: str, turn: int, what: str, text: str = "") -> TimelineEntry:
    return TimelineEntry(round(at, 6), str(lane), turn, what, text=text.strip())


def _entries(at: float, event: Event) -> Iterator[TimelineEntry]:
    match event:
        case Transcript():
            tentative = " ".join(word.text for word in event.tentative)
            text = f"{event.committed_text} [{tentative}]" if tentative else event.text
            what = "final transcript" if event.final else "transcript"
            yield _entry(at, Lane.ASR, event.turn, what, text)
        case TokenBurst():
            yield _entry(at, Lane.DECODE, event.turn, "shown", event.text)
        case ToolCall():
            what = "returned" if event.result else "called"
            yield _entry(at, Lane.DECODE, event.turn, what, call_text(event))
        case Clause():
            yield _entry(at, Lane.SPEAKER, event.turn, "clause", event.text)
        case Notice():
            yield _entry(at, SESSION, NOBODY, "notice", event.text)
        case TurnTrace():
            for mark, moment in event.marks.items():
                name = mark.replace("_", " ")
                yield _entry(moment, LANE_OF[Mark(mark)], event.turn, name)
            for span in event.spans:
                ms = round((span.end - span.start) * 1000, 3)
                text = str(span.args.get("text", "")).strip()
                yield TimelineEntry(
                    round(span.start, 6), span.lane, event.turn, span.name, ms, text
                )
            yield _entry(at, SESSION, event.turn, "turn over", event.outcome)


def turns(replay: ReplayResult) -> list[TurnLine]:
    """Return the turns that are over, in order of their numbers."""
    exchanges = Exchanges()
    for _, event in replay.shown:
        if isinstance(event, Transcript | TokenBurst | Clause):
            exchanges.follow(event)
    ended = [(trace, exchanges.end(trace.turn)) for trace in replay.traces]
    return [TurnLine(trace, exchange.said, exchange.reply.strip()) for trace, exchange in ended]


def differences(recorded: ReplayResult, replay: ReplayResult) -> list[Difference]:
    """Return the differences between the turns of a recording and those of a replay."""
    found: list[Difference] = []
    before, now = turns(recorded), turns(replay)
    if before and len(before) != len(now):  # a recording that was cut off may have no turn
        found.append(Difference(NOBODY, "turns", len(before), len(now)))
    for old, new in zip(before, now, strict=False):
        for key, expected, was in (
            ("outcome", old.trace.outcome, new.trace.outcome),
            ("transcript", old.transcript, new.transcript),
            ("reply", old.reply, new.reply),
        ):
            if expected != was:
                found.append(Difference(new.trace.turn, key, expected, was))
    return found


def lines(replay: ReplayResult, found: Iterable[Difference]) -> Iterator[str]:
    """Yield the timeline, a line for each turn, and the differences, as text."""
    for entry in timeline(replay):
        turn = entry.turn or ""
        took = "" if entry.ms is None else f" {entry.ms:g} ms"
        text = f": {entry.text}" if entry.text else ""
        yield printable(f"{entry.time:10.3f} {turn:>4}  {entry.lane:<11}  {entry.what}{took}{text}")
    yield ""
    for line in turns(replay):
        yield turn_text(line)
    yield from different(found)


def compared(recorded: ReplayResult, replay: ReplayResult) -> Iterator[str]:
    """Yield two lines of text for each turn: the recorded one and the one of the replay."""
    for before, now in zip_longest(turns(recorded), turns(replay)):
        for when, line in (("recorded", before), ("now", now)):
            if line is not None:
                yield f"{when:<8}  {turn_text(line)}"


def turn_text(line: TurnLine) -> str:
    """Return a turn on one line."""
    latency = voice_to_voice_ms(line.trace)
    took = "     -" if latency is None else f"{latency:6.0f} ms"
    said, heard = len(line.reply.split()), line.trace.heard
    part = f" ({len(heard.split())} of {said} words)" if heard != line.reply else ""
    what = f"turn {line.trace.turn}  {line.trace.outcome:<11} {took}"
    return printable(f"{what}  you: {line.transcript}  loop: {heard}{part}")


def different(found: Iterable[Difference]) -> Iterator[str]:
    """Yield the differences as text."""
    for difference in found:
        whose = f"turn {difference.turn}: " if difference.turn else ""
        yield printable(f"not as expected: {whose}{difference.key}")
        yield printable(f"  expected: {difference.expected!r}")
        yield printable(f"  was:      {difference.was!r}")


def records(replay: ReplayResult, found: Iterable[Difference]) -> Iterator[dict[str, Any]]:
    """Yield the timeline, the turns and the differences, as plain values."""
    for entry in timeline(replay):
        yield {"kind": "event", **asdict(entry)}
    for line in turns(replay):
        yield {
            "kind": "turn",
            "turn": line.trace.turn,
            "outcome": line.trace.outcome,
            "transcript": line.transcript,
            "reply": line.reply,
            "heard": line.trace.heard,
            "voice_to_voice_ms": voice_to_voice_ms(line.trace),
            "endpoint_to_sound_ms": endpoint_to_sound_ms(line.trace),
            "counters": dict(line.trace.counters),
        }
    for difference in found:
        yield {"kind": "difference", **asdict(difference)}
