"""Reads the folder of a recorded conversation, and replays it.

The folder may have been cut off at any place and may come from anybody, so everything in it is
checked. A fault raises a ConfigError that names the file.

`differences` compares the decisions of the core with the recorded ones. The core gets the recorded
reports at their recorded times. No sound, no model and no clock is needed, so this takes seconds
and is the same on every machine. A test takes one line:

    assert not differences(Path("bug"))

`hold_again` replays in real time: a real session hears the recorded microphone. The client's
requests are made again at their times: texts, replies, cancellations, and settings of turns and
replies. The results of the client's tools are left out. So are the client's changes of the history,
and the ends of turns that the client set itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec

from voiceloop.asr.turns import SpeechDetector
from voiceloop.audio.devices import FileMicrophone, NullSpeaker
from voiceloop.dialogue import inputs
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.inputs import Input
from voiceloop.dialogue.state import Options
from voiceloop.engines import Engines
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.recording import format as form
from voiceloop.recording.format import CoreCall, CoreStart, Raised, plain, state_of, tagged
from voiceloop.recording.recording import Core
from voiceloop.replay.timeline import NOBODY, Difference, ReplayResult
from voiceloop.session import Session
from voiceloop.settings.config import (
    CHOOSING,
    Config,
    Given,
    TurnConfig,
    given_in,
    given_in_settings,
    merged,
    of_engine,
    toml,
)
from voiceloop.settings.flags import Command
from voiceloop.trace.record import Lane, Mark
from voiceloop.turn.resources import load_rules
from voiceloop.types import Event, TurnTrace

HINT = "name a folder that `voiceloop talk --record` or `voiceloop serve --record` has made"
MOST_LINE = 1 << 24
"""Maximum length of a line, in bytes."""
_LANES = list(Lane)

T = TypeVar("T")
MOST = 5
"""Maximum number of differences that are reported. After the first one, others follow from it."""

PlainAction = Mapping[str, Mapping[str, Any]]
SPEAKER_RATE = 24_000
"""Sample rate of the replies, which nobody hears, in hertz."""

Requests = Sequence[tuple[float, inputs.Input]]


def origin(folder: Path) -> form.RecordingOrigin:
    """Return how a recording was made."""
    path = folder / form.ABOUT
    return _read(form.RecordingOrigin, next(_lines(path), b""), path)


def reports(folder: Path) -> tuple[form.CoreStart, Iterator[tuple[form.CoreCall, Input]]]:
    """Return what the core knew at the beginning, and all calls of the core, each with its
    report."""
    path = folder / form.REPORTS
    lines = _lines(path)
    start = _read(form.CoreStart, next(lines, b""), path)
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
    call = _read(form.CoreCall, line, path)
    try:
        return call, form.report_in(call.report)
    except msgspec.ValidationError as error:
        raise _unreadable(path, error) from None


def _event(line: bytes, begun: float, path: Path) -> tuple[float, Event]:
    record = _read(form.ShownEvent, line, path)
    try:
        event = form.event_in(record.event)
        if isinstance(event, TurnTrace):
            event = in_order(since(event, begun))
    except (msgspec.ValidationError, ValueError) as error:
        raise _unreadable(path, error) from None
    return record.at - begun, event


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


def _read(kind: type[T], line: bytes, path: Path) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Any) -> ConfigError:
    return ConfigError(f"{path} is damaged, or of another version of voiceloop: {error}", HINT)


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


def settings_for(folder: Path, command: Command) -> Config:
    """Return the settings of a recording, with the flags of `command`.

    The folder may come from anybody. So settings that choose code, models or servers are taken from
    this machine and not from the folder. The preset is taken from the folder.
    """
    path = folder / form.SETTINGS
    own = given_in_settings(command.settings, command.origins)
    found: Given = {
        key: (value, str(path))
        for key, value in given_in(toml(path, HINT), path).items()
        if not _chooses(key)
    }
    mine = {key: one for key, one in own.items() if _chooses(key) or one[1] == "flag"}
    return merged({**found, **mine})[0]


def _chooses(key: str) -> bool:
    return key in CHOOSING or of_engine(key)


def hold_again(folder: Path, engines: Engines, settings: Config) -> ReplayResult:
    """Hold the conversation in `folder` once more, in real time."""
    about, requests = origin(folder), _requests(folder)
    events: list[tuple[float, Event]] = []

    async def converse() -> None:
        begun = anyio.current_time()

        def show(event: Event) -> None:
            if isinstance(event, TurnTrace):
                event = in_order(since(event, begun))
            events.append((anyio.current_time() - begun, event))

        with FileMicrophone(folder / form.MICROPHONE) as microphone:
            session = Session(
                *(engines, microphone, NullSpeaker(SPEAKER_RATE), settings, show),
                full_duplex=about.full_duplex,
            )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_request, session, requests, begun)
                await session.run()
                tasks.cancel_scope.cancel()

    anyio.run(converse)
    return ReplayResult(tuple(events))


def _requests(folder: Path) -> Requests:
    """Return the clients' requests, each with the seconds from the first report to the request."""
    _, calls = reports(folder)
    kinds = inputs.Write | inputs.Respond | inputs.Cancel | inputs.SettingsChanged
    found, begun = list[tuple[float, inputs.Input]](), None
    for call, report in calls:
        begun = call.at if begun is None else begun
        if isinstance(report, kinds):
            found.append((call.at - begun, report))
    return found


async def _request(session: Session, requests: Requests, begun: float) -> None:
    """Make each request at its time."""
    for at, request in requests:
        await anyio.sleep_until(begun + at)
        match request:
            case inputs.Write(text, options):
                session.write(text, options and _in_own_voice(options))
            case inputs.Respond(options):
                session.respond(options and _in_own_voice(options))
            case inputs.Cancel(number):
                session.cancel(number)
            case inputs.SettingsChanged(policy=TurnConfig() as policy):
                session.listen(SpeechDetector(policy), policy)
            case inputs.SettingsChanged(language=str(code)):
                session.language = language(code)
            case inputs.SettingsChanged(reply=Options() as options):
                session.conduct(
                    _in_own_voice(options),
                    answers=request.answers is not False,
                    interruptible=request.interruptible is not False,
                    thinks=request.thinks is not False,
                )
            case _:
                pass


def _in_own_voice(options: Options) -> Options:
    """Return `options` with the voice that is configured on this machine, which may lack the
    recorded one."""
    return replace(options, voice=None)
