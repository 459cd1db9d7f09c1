"""Replays a recorded conversation in real time: a real session hears the recorded microphone.

The client's requests are made again at their times: texts, replies, cancellations, and settings of
turns and replies. The results of the client's tools are left out. So are the client's changes of
the history, and the ends of turns that the client set itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio

from voiceloop.asr.turns import SpeechDetector
from voiceloop.audio.devices import FileMicrophone, NullSpeaker
from voiceloop.config import (
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
from voiceloop.dialogue import inputs
from voiceloop.dialogue.state import Options
from voiceloop.engines import Engines
from voiceloop.flags import Command
from voiceloop.languages import language
from voiceloop.recording import format as form
from voiceloop.replay import recorded
from voiceloop.replay.timeline import ReplayResult
from voiceloop.session import Session
from voiceloop.types import Event, TurnTrace

SPEAKER_RATE = 24_000
"""Sample rate of the replies, which nobody hears, in hertz."""

Requests = Sequence[tuple[float, inputs.Input]]


def settings_for(folder: Path, command: Command) -> Config:
    """Return the settings of a recording, with the flags of `command`.

    The folder may come from anybody. So settings that choose code, models or servers are taken from
    this machine and not from the folder. The preset is taken from the folder.
    """
    path = folder / form.SETTINGS
    own = given_in_settings(command.settings, command.origins)
    found: Given = {
        key: (value, str(path))
        for key, value in given_in(toml(path, recorded.HINT), path).items()
        if not _chooses(key)
    }
    mine = {key: one for key, one in own.items() if _chooses(key) or one[1] == "flag"}
    return merged({**found, **mine})[0]


def _chooses(key: str) -> bool:
    return key in CHOOSING or of_engine(key)


def hold_again(folder: Path, engines: Engines, settings: Config) -> ReplayResult:
    """Hold the conversation in `folder` once more, in real time."""
    about, requests = recorded.about(folder), _requests(folder)
    events: list[tuple[float, Event]] = []

    async def converse() -> None:
        begun = anyio.current_time()

        def show(event: Event) -> None:
            if isinstance(event, TurnTrace):
                event = recorded.in_order(recorded.since(event, begun))
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
    _, calls = recorded.reports(folder)
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
