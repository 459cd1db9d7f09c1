"""A conversation for a program without an event loop."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from voiceloop.api.events import TalkEvent
from voiceloop.api.opening import open
from voiceloop.api.places import MicrophoneChoice, SpeakerChoice
from voiceloop.config import Config


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
