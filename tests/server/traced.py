"""The real server over scripted engines, in a process of its own, with telemetry:
`python -m tests.server.traced PORT WORDS`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from pathlib import Path

import anyio
import numpy as np

from tests.server.serving import RATE, Serving, free_port, scripted
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.asr.windowed import AsrRequest, WindowedAsr
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bundled import bundled
from voiceloop.engines import Engines
from voiceloop.server.access.auth import Access
from voiceloop.server.app import App
from voiceloop.server.ops import logs
from voiceloop.server.ops.telemetry import Telemetry
from voiceloop.server.port import LOOP, Binding
from voiceloop.server.resume.store import MemoryStore
from voiceloop.server.routes import load
from voiceloop.server.service import Service
from voiceloop.settings.config import Config, LlmConfig, VadConfig
from voiceloop.types import Pcm, ToolCall, Word

SAID = ("What", "time", "is", "it", "in", "Paris")
"""Words that can be recognised. Each is a tone of a loudness of its own."""
QUIETEST, STEP, TONE_HZ, BLOCK_S = 0.2, 0.1, 500, 0.01
REPLIES = {
    "What time is it": ("It is always noon.",),
    "What time is it in Paris": (ToolCall(1, "c1", "get_time", {"city": "Paris"}),),
}
RESULTS = {"get_time": ("It is noon ", "in Paris.")}


def spoken(text: str, word_s: float = 0.3) -> Pcm:
    """The sound of some of `SAID`, at 16 kHz."""
    time_s = np.arange(round(word_s * SPEECH_RATE)) / SPEECH_RATE
    tone = np.sin(2 * np.pi * TONE_HZ * time_s)
    words = [(QUIETEST + STEP * SAID.index(word)) * tone for word in text.split()]
    return np.concatenate(words).astype(np.float32)


class TonesAsr(WindowedAsr):
    """A recogniser that reads words by their loudness."""

    name = "tones"
    max_window_s = 30.0
    languages = ("en",)

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        size = round(BLOCK_S * SPEECH_RATE)
        blocks = np.abs(request.pcm[: len(request.pcm) // size * size]).reshape(-1, size)
        numbers = [round((float(peak) - QUIETEST) / STEP) for peak in blocks.max(axis=1)]
        words: list[Word] = []
        at = 0
        for number, run in groupby(numbers):
            start, at = at, at + len(list(run))
            if 0 <= number < len(SAID) and at - start > 20:
                words.append(Word(SAID[number], start * BLOCK_S, at * BLOCK_S))
        return words

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        return "en", 1.0


def loud(config: VadConfig) -> ScriptedVad:
    """The detector of the entry point that `traced` registers: each session loads its own."""
    return ScriptedVad()


def traced(
    folder: Path, *, words: bool = False, **variables: str
) -> AbstractContextManager[Serving]:
    """The process until the block ends."""
    package = folder / "site" / "tones-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: tones\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[voiceloop.vad]\nloud = tests.server.traced:loud\n")
    path = filter(None, [str(package.parent), os.environ.get("PYTHONPATH")])
    variables["PYTHONPATH"] = os.pathsep.join(path)
    log, module = folder / "traced.log", "tests.server.traced"
    return scripted(module, free_port(), log, words, **variables)


def main(port: str, words: str) -> None:
    logs.start(sys.stderr, logs.Formatter(transcripts=False))
    run, llm = InlineRunner, ScriptedLlm(REPLIES, results=RESULTS)
    engines = Engines(ScriptedVad(), TonesAsr(), run(), llm, run(), ScriptedTts(rate=RATE), run())
    config = Config(llm=LlmConfig(skills="none"), vad=VadConfig(engine="loud"))
    binding, telemetry = Binding(port=int(port)), Telemetry(words=words == "True")
    site = load(bundled("web"))
    service = Service(
        nullcontext(engines), config, Access(binding), site, MemoryStore(), telemetry=telemetry
    )
    app = App(service, binding)
    anyio.run(app.run, lambda: print("ready", flush=True), backend_options=LOOP)


if __name__ == "__main__":
    main(*sys.argv[1:])
