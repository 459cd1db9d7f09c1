"""Opens voiceloop in a program: reads the settings, then loads the models. A program without an
event loop gets a conversation that it can iterate over.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.from_thread import start_blocking_portal

from voiceloop.api.asking import MicrophoneChoice, SpeakerChoice
from voiceloop.api.loop import Loop, running
from voiceloop.api.talk import TalkEvent
from voiceloop.assembly.loading import open_engines
from voiceloop.engines import Engines, Kind, Own, name_of
from voiceloop.errors import ConfigError
from voiceloop.runner import in_background
from voiceloop.settings.config import Config, given_in, leaves, merged, toml
from voiceloop.tools.results import room
from voiceloop.tools.servers import configured, equipped
from voiceloop.tools.toolbox import Toolbox

logger = logging.getLogger(__name__)

ENGINE_KEYS: Mapping[str, Kind] = {
    "vad.engine": "vad",
    "asr.engine": "asr",
    "llm.engine": "llm",
    "tts.engine": "tts",
    "turns.sound": "turn",
}
"""The settings that name an engine, with the engine's kind."""
SOURCE = "voiceloop.open"
"""The origin that errors name for settings that a program gives."""


@asynccontextmanager
async def open(
    preset: str | None = None,
    *,
    config: Config | Path | str | None = None,
    tools: Sequence[Callable[..., object]] = (),
    **settings: object,
) -> AsyncGenerator[Loop]:
    """Load the models, and keep them until the context ends.

    docs/configuration.md lists the settings. They are given as keyword arguments, e.g.
    `llm={"temperature": 0.7}` or `timezone="Europe/Lisbon"`. A keyword argument wins over the TOML
    file `config`, and the file wins over the preset. No other file is read. If `config` is a
    `Config`, it is used unchanged. Instead of an engine's name, its class or function may be given:
    `llm={"engine": Parrot}`. The thread counts of the process stay as they are.

    The language model may call `tools`: functions, decorated by `tool` or not. It may also call the
    tools of the MCP servers in the settings.

    Each model is loaded on its own thread. If loading is cancelled, the models are closed as soon
    as they are loaded. Raises ConfigError for wrong settings, and EngineError for models that
    cannot be used.
    """
    merged_settings, own = read_settings(preset, config, settings)
    toolbox = Toolbox(tools, most_chars=room(merged_settings.llm))
    servers = configured(merged_settings.mcp)
    async with (
        _loaded(open_engines(merged_settings, own)) as engines,
        equipped(toolbox, servers, _note) as all_tools,
        running(engines, merged_settings, all_tools) as loop,
    ):
        yield loop


def _note(text: str) -> None:
    logger.warning("tools are left out: %s", text)


def read_settings(
    preset: str | None, config: Config | Path | str | None, settings: Mapping[str, object]
) -> tuple[Config, Own]:
    """Merge the settings that a program gives with those of its file and its preset.

    Return the settings, and the engines that are given as a class or function. Raises ConfigError
    for wrong settings, and for a `Config` with a preset or settings beside it.
    """
    if isinstance(config, Config):
        if preset is not None or settings:
            raise ConfigError(
                "a Config is taken as it is, and there are settings beside it",
                "give settings, or a Config that has them",
            )
        return config, {}
    given = dict[str, tuple[object, str]]()
    if config is not None:
        path = Path(config)
        given |= {key: (value, str(path)) for key, value in given_in(toml(path), path).items()}
    own = dict[Kind, Callable[..., object]]()
    table = dict[str, object]()
    for key, value in leaves(settings):
        if key in ENGINE_KEYS and callable(value):
            own[ENGINE_KEYS[key]] = value
            value = name_of(value)
        table[key] = value
    if preset is not None:
        table["preset"] = preset
    given |= {key: (value, SOURCE) for key, value in given_in(table, SOURCE).items()}
    return merged(given)[0], own


@asynccontextmanager
async def _loaded(models: AbstractContextManager[Engines]) -> AsyncGenerator[Engines]:
    """Enter and leave `models` on other threads."""
    stack = ExitStack()
    engines = await in_background(
        partial(stack.enter_context, models), unwanted=lambda engines: stack.close()
    )
    try:
        yield engines
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(stack.close)


def run(
    preset: str | None = None,
    *,
    microphone: MicrophoneChoice = None,
    speaker: SpeakerChoice = None,
    headphones: bool = False,
    config: Config | Path | str | None = None,
    tools: Sequence[Callable[..., object]] = (),
    **settings: object,
) -> Iterator[TalkEvent]:
    """Load the models, hold one conversation, and yield its events until it is over.

    The arguments are those of `open` and `Loop.talk`. The event loop runs on a thread of its own.
    Leaving the `for` loop ends the conversation and closes the models; so does Ctrl-C.
    """
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal(name="voiceloop-run"))
        opened = open(preset, config=config, tools=tools, **settings)
        loop = stack.enter_context(portal.wrap_async_context_manager(opened))
        begun = loop.talk(microphone, speaker, headphones=headphones)
        talk = stack.enter_context(portal.wrap_async_context_manager(begun))
        # A program may still hold this generator when it ends. Later it could not be closed.
        atexit.register(stack.close)
        stack.callback(atexit.unregister, stack.close)
        while (event := portal.call(talk.take)) is not None:
            yield event
