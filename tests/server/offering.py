"""The real server over scripted engines, in a process of its own, that offers what runs at some
ports of this machine: `python -m tests.server.offering PORT PAGE FILE [PORTS …]`."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import anyio

from tests.fakes import Script
from tests.server.serving import RATE, Serving, free_port, scripted
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.bundled import bundled
from voiceloop.conversations.store import VARIABLE, location
from voiceloop.engines import Engines
from voiceloop.server.access.auth import Access
from voiceloop.server.app import App
from voiceloop.server.ops import logs
from voiceloop.server.port import LOOP, Binding
from voiceloop.server.resume.store import MemoryStore
from voiceloop.server.routes import load
from voiceloop.server.service import Service
from voiceloop.server.session.offers import OfferedConversations, Offers
from voiceloop.settings.config import Config, given_in_settings, load_config

STORY = "Once there was a whale who wanted to see the mountains, and swam and swam all day long."
HERE = {
    "Who is speaking?": ("The scripted one.",),
    "Again?": ("Scripted again.",),
    "Tell me a story": tuple(f"{word} " for word in STORY.split()),
}
"""What is replied before anybody else replies."""
TAP = Path(__file__).parents[1] / "browser" / "tap-worklet.js"
"""By this, browser tests record what sounds."""


def offering(
    folder: Path, file: Path, *ports: int, store: Path | None = None
) -> AbstractContextManager[Serving]:
    """The process until the block ends. With `store`, it also offers the conversations in there."""
    page = folder / "page"
    shutil.copytree(bundled("web"), page)
    shutil.copy(TAP, page)
    log, module = folder / "offering.log", "tests.server.offering"
    variables = {"VOICELOOP_LLM_KEY": "", VARIABLE: str(store or "")}
    return scripted(module, free_port(), log, page, file, *ports, **variables)


def main(port: str, page: str, file: str, *ports: str) -> None:
    logs.start(sys.stderr, logs.Formatter(transcripts=False))
    logging.getLogger("websockets").setLevel(logging.ERROR)
    run = InlineRunner
    engines = Engines(
        ScriptedVad(),
        ScriptedAsr(Script([], 1.0)),
        run(),
        ScriptedLlm(HERE, system="Be scripted."),
        run(),
        ScriptedTts(rate=RATE),
        run(),
    )
    binding = Binding(port=int(port))
    access = Access(binding, hosts=["voice.example.com"], origins=["http://localhost:5173"])
    own = Path(file)
    given = given_in_settings(*load_config([own] if own.exists() else []))
    offers = Offers(given, own, [int(one) for one in ports])
    config = Config()
    service = Service(
        *(nullcontext(engines), config, access, load(Path(page)), MemoryStore(), offers),
        conversations=OfferedConversations(location()) if os.environ[VARIABLE] else None,
    )
    app = App(service, binding)
    anyio.run(app.run, lambda: print("ready", flush=True), backend_options=LOOP)


if __name__ == "__main__":
    main(*sys.argv[1:])
