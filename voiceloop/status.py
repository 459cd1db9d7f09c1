"""Messages of a command on stderr: what it is loading, questions, and errors.

They are shown before heavy modules are imported, so this module imports no heavy one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from threading import Event, Lock, Thread
from time import perf_counter
from typing import TextIO

from voiceloop.bundled import EXAMPLES, STARTER_EXAMPLES
from voiceloop.errors import VoiceloopError
from voiceloop.settings.config import AsrConfig, Config, LlmConfig, TtsConfig
from voiceloop.terminal import printable, tell

REFRESH_S = 0.1
USUAL_COLUMNS = 80
"""Columns of a terminal of unknown size."""

_LINE = Lock()
"""Held while the status line or a question is written."""


def engine_names(config: Config) -> str:
    """Return the names of the engines in a line, such as `whisper tiny.en, llm starter, espeak`."""
    sound = [] if config.turns.sound == "none" else [config.turns.sound]
    llm = f"llm {llm_name(config.llm)}"
    if server := config.llm.base_url.partition("//")[2].partition("/")[0].rpartition("@")[2]:
        llm += f" at {server}"
    return ", ".join([asr_name(config.asr), *sound, llm, tts_name(config.tts)])


def llm_name(config: LlmConfig) -> str:
    """Return the name of the target, e.g. `qwen3-0.6b`.

    Return the engine's name instead if `llm.engine` is not the default and `llm.target` is.
    """
    usual = LlmConfig()
    unnamed = config.engine != usual.engine and config.target == usual.target
    return config.engine if unnamed else _last(config.target)


def asr_name(config: AsrConfig) -> str:
    """Return the name of a recogniser: engine and model of Whisper, or the engine."""
    return f"whisper {_last(config.model)}" if config.engine == "whisper" else config.engine


def tts_name(config: TtsConfig) -> str:
    """Return the engine and the model of a synthesizer, or the model alone if it begins with the
    engine's name."""
    model = _last(config.model)
    return model if model.startswith(config.engine) else f"{config.engine} {model}".strip()


def examples(config: Config) -> tuple[str, ...]:
    """Return questions that the configured models can answer."""
    return STARTER_EXAMPLES if config.llm.answers_little else EXAMPLES


@contextmanager
def loading(what: str, stream: TextIO) -> Iterator[None]:
    """Show that `what` is being loaded, and the seconds so far, while the context lasts.

    A terminal shows one line, which is updated and removed at the end. Other streams get one line,
    which ends with the seconds if nothing failed.
    """
    began, text = perf_counter(), printable(f"voiceloop: loading {what} …")
    if not stream.isatty():
        took = ""
        try:
            _write(stream, text)
            yield
            took = f" {perf_counter() - began:.1f} s"
        finally:
            _write(stream, f"{took}\n")
        return

    over = Event()

    def show() -> None:
        while not over.wait(REFRESH_S):
            with _LINE:
                took = f" {perf_counter() - began:.1f} s"
                _write(stream, f"\r\x1b[K{_fitting(text, _columns(stream) - len(took))}{took}")

    clock = Thread(target=show, name="voiceloop-status", daemon=True)
    clock.start()
    try:
        _write(stream, _fitting(text, _columns(stream)))
        yield
    finally:
        over.set()
        clock.join()
        _write(stream, "\r\x1b[K")


def ask(question: str) -> bool | None:
    """Ask a question in place of the status line, and return whether the user says yes.

    Blocks until the user answers. Returns None without a terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    with _LINE:
        _write(sys.stderr, f"\r\x1b[K{printable(question)} [y/N] ")
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_error(error: VoiceloopError) -> None:
    """Print an error on stderr: one line, and its hint on another."""
    tell(f"voiceloop: {error.message}", sys.stderr)
    if error.hint:
        tell(f"hint: {error.hint}", sys.stderr)


def _last(name: str) -> str:
    """Return the last part of a path or of a name on the hub."""
    return PurePath(name).name


def _columns(stream: TextIO) -> int:
    """Return the number of columns of a terminal minus 1: some terminals wrap a full line."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        columns = 0
    return (columns or USUAL_COLUMNS) - 1


def _fitting(text: str, room: int) -> str:
    """Shorten `text` to `room` characters: a line that wraps could not be removed again."""
    return text if len(text) <= room else f"{text[: max(room - 2, 0)]} …"


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
