"""Holds the conversations of a program on its loaded models, and serves clients within it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from voiceloop.api.asking import (
    AnsweredTurn,
    MicrophoneChoice,
    MonoSound,
    Places,
    SpeakerChoice,
    opened_places,
    question,
)
from voiceloop.api.talk import Talk, TalkEvents
from voiceloop.asr.turns import Detector
from voiceloop.assembly.loading import of_conversation
from voiceloop.audio.devices import FilteredMicrophone, Mute, Pace
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.calibration.idle import cache_folder, calibrate_in_idle_time
from voiceloop.conversations.condensing import Continuing
from voiceloop.conversations.keeping import KeptConversation, kept
from voiceloop.conversations.names import checked
from voiceloop.conversations.store import location
from voiceloop.engines import Engines
from voiceloop.errors import ConfigError, VoiceloopError, first_cause
from voiceloop.server.asgi import Application
from voiceloop.server.command import Serve, service_beside
from voiceloop.session import Session
from voiceloop.settings.config import Config
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.skills import begun, unusable, wall_time


class Mounting(Protocol):
    """An application under which others can be mounted, such as FastAPI's or Starlette's."""

    def mount(self, path: str, app: Any) -> object:
        """Let `app` answer all requests below `path`."""
        ...


class Loop:
    """The loaded models of a program, and its conversations; any number may run at once."""

    def __init__(
        self, engines: Engines, config: Config, tasks: TaskGroup, toolbox: Toolbox = NO_TOOLS
    ) -> None:
        """Run the services of `mount` in `tasks`. The language model may call the tools in
        `toolbox`."""
        self.config = config
        """All settings, merged."""
        self._engines = engines
        self._toolbox = toolbox
        self._tasks = tasks
        self._talks = set[Talk]()
        self._mounted = dict[str, anyio.Event]()
        """Mounted services by path, each with the event that is set when the service has ended."""
        self._closing = anyio.Event()

    @asynccontextmanager
    async def talk(
        self,
        microphone: MicrophoneChoice = None,
        speaker: SpeakerChoice = None,
        *,
        conversation: str | None = None,
        headphones: bool = False,
    ) -> AsyncGenerator[Talk]:
        """Hold a conversation until it is over or the context ends. The end of the context cuts off
        a reply.

        `microphone` and `speaker` may be names of devices, files as a `Path`, or objects of the
        program. None is the default device of the sound card. The echo of the speaker is removed
        from the sound card's microphone unless the user wears `headphones`. If the microphone is a
        file or an object, the speaker may not be a device; None discards the replies then.
        `conversation` is the name of a kept conversation to begin or to continue.

        Raises AudioError, ConfigError or DeviceError for a microphone or speaker that cannot be
        used, and VoiceloopError if the loop is closed or the kept conversation is open elsewhere.
        """
        self._check_open()
        events = TalkEvents()
        places = opened_places(
            *(microphone, speaker, self._engines.tts.rate, events.note), headphones=headphones
        )
        opening = nullcontext()
        if conversation is not None:
            opening = kept(location(), checked(conversation), events.note)
        with opening as known:
            async with places as opened, self._held(opened, events, known=known) as talk:
                yield talk

    async def ask(
        self, sound: Path | str | MonoSound, rate: int = SPEECH_RATE, *, pace: Pace = "max"
    ) -> AnsweredTurn:
        """Answer a recorded question, as one turn in a conversation of its own.

        `sound` is an audio file, or mono samples: floats in [-1, 1] or int16, at `rate` hertz. For
        a file `rate` is ignored. With pace `max` the recording is heard as fast as possible. With
        pace `realtime` it takes its own length, and latencies are those of a conversation.
        Raises AudioError for a recording that cannot be used or is longer than `turns.max_turn_s`.
        """
        self._check_open()
        with question(sound, rate, self._engines.tts.rate, pace, self.config.turns) as asked:
            places, events = (
                Places(asked.microphone, asked.speaker, full_duplex=False),
                TalkEvents(),
            )
            async with self._held(places, events, asked.detector) as talk:
                shown = [event async for event in talk]
            self._check_open()
            return asked.answered(shown)

    def mount(
        self,
        app: Mounting,
        path: str = "/voice",
        *,
        host: str = "localhost",
        port: int = 8000,
        behind_proxy: bool = False,
        api_key_file: Path | None = None,
        allow_host: Sequence[str] = (),
        allow_origin: Sequence[str] = (),
    ) -> None:
        """Serve the page and the Realtime protocol below `path` of a FastAPI or Starlette
        application, until the loop is closed.

        `host` and `port` are those of the server that runs the application. The other options are
        those of `voiceloop serve`. Raises ConfigError for wrong options, and for a path that is
        mounted already.
        """
        self._check_open()
        if not path.startswith("/"):
            raise ConfigError(f"the path '{path}' does not begin with a slash", "give '/voice'")
        if path in self._mounted:
            raise ConfigError(f"{path} is mounted already", "give another path")
        command = Serve(
            host=host,
            port=port,
            behind_proxy=behind_proxy,
            api_key_file=api_key_file,
            allow_host=tuple(allow_host),
            allow_origin=tuple(allow_origin),
            settings=self.config,
        )
        service = service_beside(command, self._engines)
        application = Application(lambda: service)
        application.service = service  # requests are answered from now on
        ended = self._mounted[path] = anyio.Event()
        app.mount(path, application)
        self._tasks.start_soon(self._serve, application, ended)

    async def _serve(self, application: Application, ended: anyio.Event) -> None:
        try:
            async with application.open():
                await self._closing.wait()
        finally:
            ended.set()

    async def close(self) -> None:
        """End all conversations. Those of `talk` and `ask` end at once. Clients have up to
        `server.drain_s` seconds to finish their turns."""
        self._closing.set()
        for talk in self._talks:
            talk.end()
        for over in [*(talk.over for talk in self._talks), *self._mounted.values()]:
            await over.wait()

    @asynccontextmanager
    async def _held(
        self,
        places: Places,
        events: TalkEvents,
        detector: Detector | None = None,
        known: KeptConversation | None = None,
    ) -> AsyncGenerator[Talk]:
        """Run a conversation while the context lasts.

        `detector` replaces the speech detector of the settings. `known` is a kept conversation to
        continue, None if the conversation is not kept.
        """
        engines = of_conversation(self._engines, self.config)
        config, toolbox = self.config, self._toolbox
        mute = Mute()
        microphone = FilteredMicrophone(places.microphone, mute)
        goes_on, options = None, dict[str, Any]()
        if known is not None:
            goes_on = Continuing(known, engines, config, events.note, toolbox)
            options |= goes_on.options()
        else:
            now = wall_time(config.timezone)
            options["conversation"] = begun(engines.llm, config, now, toolbox)
            if reason := unusable(options["conversation"], config, toolbox):
                events.note(reason)
        session = Session(
            *(engines, microphone, places.speaker, config, events.show),
            full_duplex=places.full_duplex,
            detector=detector,
            toolbox=toolbox,
            ends=True,
            **options,
        )
        talk = Talk(session, mute, events)
        try:
            async with own_tasks() as tasks:
                if places.beside is not None:
                    tasks.start_soon(places.beside)
                if goes_on is not None:
                    tasks.start_soon(goes_on.keep, session)
                await tasks.start(self._run, talk)
                yield talk
                talk.end()
            if failure := events.failure():
                raise failure
        finally:
            with anyio.CancelScope(shield=True):
                await engines.llm_runner.call(session.conversation.close)

    async def _run(self, talk: Talk, *, task_status: TaskStatus[None]) -> None:
        self._talks.add(talk)
        try:
            await talk.run(task_status=task_status)
        finally:
            self._talks.discard(talk)

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise VoiceloopError("this loop is closed", "open another one with voiceloop.open")


@asynccontextmanager
async def running(
    engines: Engines, config: Config, toolbox: Toolbox = NO_TOOLS
) -> AsyncGenerator[Loop]:
    """Yield a loop with these engines. When the context ends, all conversations end."""
    async with own_tasks() as tasks:
        loop = Loop(engines, config, tasks, toolbox)
        tasks.start_soon(calibrate_in_idle_time, engines, config.turns, cache_folder())
        try:
            yield loop
        finally:
            with anyio.CancelScope(shield=True):
                await loop.close()


@asynccontextmanager
async def own_tasks() -> AsyncGenerator[TaskGroup]:
    """Yield a task group, which is cancelled at the end of the context.

    An error of the context or of a task is raised as it is, not within an ExceptionGroup.
    """
    raised: BaseException | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:
                raised = error
            tasks.cancel_scope.cancel()
    except ExceptionGroup as group:
        raise first_cause(group) from None
    if raised is not None:
        raise raised
