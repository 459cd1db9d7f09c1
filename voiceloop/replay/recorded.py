"""Reads the folder of a recorded conversation, checks its decisions, and tells what happened.

The folder may have been cut off at any place and may come from anybody, so everything in it is
checked. A fault raises a ConfigError that names the file.

`differences` compares the decisions of the core with the recorded ones. The core gets the recorded
reports at their recorded times. No sound, no model and no clock is needed, so this takes seconds
and is the same on every machine. A test takes one line:

    assert not differences(Path("bug"))

The timeline is sorted by time, then lane, then turn, then the order within the turn. So it does not
depend on the order of stages that worked at the same moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import msgspec

from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.inputs import Input
from voiceloop.errors import ConfigError
from voiceloop.recording import format as form
from voiceloop.recording.format import CoreCall, CoreStart, Raised, plain, state_of, tagged
from voiceloop.recording.recording import Core
from voiceloop.terminal import printable
from voiceloop.trace.record import LANE_OF, Lane, Mark
from voiceloop.turn.resources import load_rules
from voiceloop.types import Clause, Event, Notice, TokenBurst, ToolCall, Transcript, TurnTrace
from voiceloop.view.transcript import Exchanges, TurnOver, call_text

HINT = "name a folder that `voiceloop talk --record` or `voiceloop serve --record` has made"
MOST_LINE = 1 << 24
"""Maximum length of a line, in bytes."""
MOST = 5
"""Maximum number of differences that are reported. After the first one, others follow from it."""
NOBODY = 0
"""Turn number of events that belong to no turn."""
SESSION = "session"
"""Lane of events that belong to no stage."""
_LANES = list(Lane)

PlainAction = Mapping[str, Mapping[str, Any]]


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
class Difference:
    """An expected value that the replay did not give, and the actual one."""

    turn: int
    key: str
    expected: object
    was: object


# --- the folder ----------------------------------------------------------------------------------


def reports(folder: Path) -> tuple[form.CoreStart, Iterator[tuple[form.CoreCall, Input]]]:
    """Return what the core knew at the beginning, and all calls of the core, each with its
    report."""
    path = folder / form.REPORTS
    lines = _lines(path)
    with _checked(path):
        start = msgspec.json.decode(next(lines, b""), type=form.CoreStart)
    if start.format != form.FORMAT:
        raise ConfigError(f"{path} has format {start.format}, not {form.FORMAT}", HINT)
    return start, (_call(line, path) for line in lines)


def shown(folder: Path) -> ReplayResult:
    """Return the events that the recorded session showed. Times are seconds since the first
    report."""
    _, calls = reports(folder)
    call, _ = next(calls, (form.CoreCall(0.0, {}, []), None))
    path = folder / form.EVENTS
    lines = _lines(path) if path.exists() else ()
    return ReplayResult(tuple(_event(line, call.at, path) for line in lines))


def since(trace: TurnTrace, begun: float) -> TurnTrace:
    """Return `trace` with times that count from `begun`. Raises ValueError for an unknown mark."""
    marks = {str(Mark(mark)): moment - begun for mark, moment in trace.marks.items()}
    spans = [replace(span, start=span.start - begun, end=span.end - begun) for span in trace.spans]
    return replace(trace, marks=marks, spans=tuple(spans))


def in_order(trace: TurnTrace) -> TurnTrace:
    """Sort the spans and counters of `trace`, since simultaneous stages have no fixed order."""
    spans = sorted(
        trace.spans, key=lambda span: (span.start, _LANES.index(Lane(span.lane)), span.end)
    )
    counters = dict(sorted(trace.counters.items()))
    return replace(trace, spans=tuple(spans), counters=counters)


def _call(line: bytes, path: Path) -> tuple[form.CoreCall, Input]:
    with _checked(path):
        call = msgspec.json.decode(line, type=form.CoreCall)
        return call, form.report_in(call.report)


def _event(line: bytes, begun: float, path: Path) -> tuple[float, Event]:
    with _checked(path):
        record = msgspec.json.decode(line, type=form.ShownEvent)
        event = form.event_in(record.event)
        if isinstance(event, TurnTrace):
            event = in_order(since(event, begun))
        return record.at - begun, event


@contextmanager
def _checked(path: Path) -> Iterator[None]:
    """Raise a ConfigError that names the file `path` if a value does not fit its type."""
    try:
        yield
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        why = f"{path} is damaged, or of another version of voiceloop: {error}"
        raise ConfigError(why, HINT) from None


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file. If the last one lacks its line end, it was cut off, and is left
    out. Raises ConfigError for a file that is missing or cannot be read, and for a line of more
    than `MOST_LINE` bytes."""
    if not path.is_file():
        found = sorted(one.parent.name for one in path.parent.glob(f"*/{form.REPORTS}"))
        hint = f"name one of those in it, such as {path.parent / found[-1]}" if found else HINT
        raise ConfigError(f"{path.parent} is no recording: it has no {path.name}", hint)
    try:
        with path.open("rb") as file:
            while line := file.readline(MOST_LINE):
                if line.endswith(b"\n"):
                    yield line
                elif len(line) == MOST_LINE:
                    raise ConfigError(f"{path} has a line of more than {MOST_LINE} bytes", HINT)
    except OSError as error:
        hint = "check its permissions"
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint) from error


# --- decisions -----------------------------------------------------------------------------------


def differences(folder: Path, core: Core = receive) -> list[Difference]:
    """Compare the actions that `core` chooses with those of the recording in `folder`. Return the
    first `MOST` differences, at most one for each report. Raises ConfigError if the folder is no
    recording."""
    start, calls = reports(folder)
    return list(islice(compared(start, calls, core), MOST))


def compared(
    start: CoreStart, calls: Iterable[tuple[CoreCall, Input]], core: Core
) -> Iterator[Difference]:
    """Yield the first difference of each call at which `core` chooses other actions than the
    recorded ones. Stop when `core` raises an exception."""
    state = state_of(start)
    load_rules(state.settings.policy)
    begun: float | None = None
    numbers: dict[int, int] = {}
    """The numbers of the turns that the user sees, by the turns' ids."""
    for call, report in calls:
        begun = call.at if begun is None else begun
        decided = _decided(core, state, report, call.at)
        numbers |= _begun(call.actions)
        pairs = zip_longest(call.actions, decided)
        for recorded, now in islice((pair for pair in pairs if pair[0] != pair[1]), 1):
            event = getattr(report, "event", report)  # `Detected` has one
            moment = f"{call.at - begun:.3f} s, on {type(event).__name__}"
            number = numbers.get(_turn(now if recorded is None else recorded), NOBODY)
            yield Difference(number, moment, _said(recorded), _said(now))
        if decided and Raised.__name__ in decided[0]:
            return


def _decided(
    core: Core, state: ConversationState, report: Input, at: float
) -> Sequence[PlainAction]:
    """Return the actions that the core chooses, in the form of a recording."""
    try:
        actions = core(state, report, at)
    except Exception as error:  # a recording has it in place of actions
        return [plain(tagged(Raised(repr(error))))]
    return [plain(tagged(action)) for action in actions]


def _begun(actions: Sequence[PlainAction]) -> dict[int, int]:
    """Return the numbers of the turns that begin with `actions`, by the turns' ids."""
    found: dict[int, int] = {}
    for action in actions:
        match action:
            case {"Begin": {"turn": int(turn), "number": int(number)}}:
                found[turn] = number
            case _:
                pass
    return found


def _turn(action: PlainAction | None) -> int:
    """Return the id of the turn that an action is for; 0 if it is for none."""
    for fields in (action or {}).values():
        if isinstance(turn := fields.get("turn"), int):
            return turn
    return 0


def _said(action: PlainAction | None) -> str:
    """Return an action as Python code, such as `PauseReply(turn=2)`; `nothing` for None."""
    if action is None:
        return "nothing"
    return ", ".join(
        f"{name}({', '.join(f'{key}={value!r}' for key, value in fields.items())})"
        for name, fields in action.items()
    )


# --- what happened -------------------------------------------------------------------------------


def timeline(replay: ReplayResult) -> list[TimelineEntry]:
    """Return everything that happened, in order."""
    entries = [entry for at, event in replay.shown for entry in _entries(at, event)]
    return sorted(entries, key=lambda e: (e.time, [*_LANES, SESSION].index(e.lane), e.turn))


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


def turns(replay: ReplayResult) -> list[TurnOver]:
    """Return the turns that are over, in order of their numbers."""
    exchanges = Exchanges()
    for _, event in replay.shown:
        if isinstance(event, Transcript | TokenBurst | Clause):
            exchanges.follow(event)
    return [exchanges.over(trace) for trace in replay.traces]


def lines(replay: ReplayResult, found: Iterable[Difference]) -> Iterator[str]:
    """Yield the timeline, a line for each turn, and the differences, as text."""
    for entry in timeline(replay):
        turn = entry.turn or ""
        took = "" if entry.ms is None else f" {entry.ms:g} ms"
        text = f": {entry.text}" if entry.text else ""
        yield printable(f"{entry.time:10.3f} {turn:>4}  {entry.lane:<11}  {entry.what}{took}{text}")
    yield ""
    for over in turns(replay):
        latency = over.voice_to_voice_ms
        took = "     -" if latency is None else f"{latency:6.0f} ms"
        words, heard = len(over.reply.split()), len(over.heard.split())
        part = f" ({heard} of {words} words)" if over.heard != over.reply else ""
        what = f"turn {over.turn}  {over.outcome:<11} {took}"
        yield printable(f"{what}  you: {over.said}  loop: {over.heard}{part}")
    for difference in found:
        whose = f"turn {difference.turn}: " if difference.turn else ""
        yield printable(f"not as expected: {whose}{difference.key}")
        yield printable(f"  expected: {difference.expected!r}")
        yield printable(f"  was:      {difference.was!r}")


def records(replay: ReplayResult, found: Iterable[Difference]) -> Iterator[dict[str, Any]]:
    """Yield the timeline, the turns and the differences, as plain values."""
    for entry in timeline(replay):
        yield {"kind": "event", **asdict(entry)}
    for over in turns(replay):
        yield {
            "kind": "turn",
            "turn": over.turn,
            "outcome": over.outcome,
            "transcript": over.said,
            "reply": over.reply,
            "heard": over.heard,
            "voice_to_voice_ms": over.voice_to_voice_ms,
            "endpoint_to_sound_ms": over.endpoint_to_sound_ms,
            "counters": dict(over.trace.counters),
        }
    for difference in found:
        yield {"kind": "difference", **asdict(difference)}
