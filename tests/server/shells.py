"""The service over scripted engines in one of its shells, in a process of its own:
`python -m tests.server.shells PORT SHELL`."""

from __future__ import annotations

import logging
import socket
import sys
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import anyio
import uvicorn
from fastapi import FastAPI
from msgspec.structs import replace

from tests.server.serving import RATE, Serving, free_port, scripted, until
from tests.server.traced import TonesAsr
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.api.loop import Loop
from voiceloop.bundled import bundled
from voiceloop.engines import Engines
from voiceloop.server.access.auth import Access
from voiceloop.server.app import App
from voiceloop.server.asgi import Application
from voiceloop.server.ops import logs
from voiceloop.server.port import LOOP, Binding
from voiceloop.server.resume.store import MemoryStore
from voiceloop.server.routes import load
from voiceloop.server.service import Service
from voiceloop.settings.config import Config
from voiceloop.types import ToolCall

SHELLS = {"own": "", "uvicorn": "", "mount": "/voice"}
"""Where the service is: alone at a port as `voiceloop serve`, under uvicorn, mounted in FastAPI."""
LOOK, BOTH = "Look", "Look twice"
"""What the scripted model answers by calls of `look`."""
SOCKETS = 8
QUICK_S = 0.002
"""What a step of a model takes: little, so that many responses are over soon."""


@contextmanager
def in_shell(folder: Path, shell: str) -> Iterator[Serving]:
    """The process until the block ends; at first it waits until clients may connect."""
    log = folder / f"{shell}.log"
    with scripted("tests.server.shells", free_port(), log, shell) as server:
        until(partial(_ready, f"{server.page}{SHELLS[shell]}/readyz"))
        server.url = f"ws://localhost:{server.port}{SHELLS[shell]}/v1/realtime"
        yield server


def _ready(page: str) -> bool:
    try:
        with urlopen(page):
            return True
    except HTTPError:
        return False


def _engines() -> Engines:
    run = InlineRunner
    replies = {
        LOOK: (ToolCall(1, "c1", "look", {}),),
        BOTH: ("Let me see. ", ToolCall(1, "c1", "look", {}), ToolCall(1, "c2", "look", {})),
        "What time is it": ("It is always noon. ", "Even at night."),
    }
    results = {"c1": ("I see one.",), "c2": ("I see two.",)}
    llm = ScriptedLlm(replies, burst_cost=QUICK_S, results=results)
    hears, says = TonesAsr(), ScriptedTts(QUICK_S, rate=RATE, word_samples=RATE // 50)
    nothing: Any = deque[Any](maxlen=0)  # what they would note is memory that grows
    llm.log = says.spoken = nothing
    return Engines(ScriptedVad(), hears, run(), llm, run(), says, run(), new_vad=ScriptedVad)


def _config() -> Config:
    """Limits that nothing of what is valid reaches."""
    config, most = Config(), 10**9
    return replace(
        config,
        server=replace(
            config.server,
            max_sessions=2 * SOCKETS,
            max_sessions_per_key=2 * SOCKETS,
            resume_s=1.0,
            audio_ahead_s=1e9,
            audio_backlog_s=1e9,
            messages_per_s=most,
            messages_burst=most,
            prefill_tokens_per_min=most,
            generated_tokens_per_min=most,
        ),
    )


def _service(engines: Engines, config: Config, port: int) -> Service:
    access = Access(Binding(port=port))
    models = nullcontext(engines)
    return Service(models, config, access, load(bundled("web")), MemoryStore(), calibrates=False)


def _site(engines: Engines, config: Config, port: int) -> FastAPI:
    @asynccontextmanager
    async def lifespan(site: FastAPI) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            loop = Loop(engines, config, tasks)
            loop.mount(site, port=port)
            yield
            await loop.close()

    return FastAPI(lifespan=lifespan)


def main(text: str, shell: str) -> None:
    logs.start(sys.stderr, logs.Formatter(transcripts=False))
    logging.getLogger("websockets").setLevel(logging.ERROR)
    port, engines, config = int(text), _engines(), _config()
    if shell == "own":
        app = App(_service(engines, config, port), Binding(port=port))
        anyio.run(app.run, lambda: print("ready", flush=True), backend_options=LOOP)
        return
    site = _site(engines, config, port)
    given = Application(lambda: _service(engines, config, port)) if shell == "uvicorn" else site
    with socket.create_server(("127.0.0.1", port)) as listening:
        print("ready", flush=True)  # who connects now waits until it accepts
        uvicorn.Server(uvicorn.Config(given, log_config=None)).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
