"""What a command tells on stderr: what is being loaded while it gets ready, and what went wrong.

It is shown before anything heavy is imported, so this module imports nothing that is.
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

from voiceloop.bundled import EXAMPLES, STARTER_ANSWERS, STARTER_EXAMPLES, STARTER_HEARS
from voiceloop.config import AsrConfig, Config, LlmConfig, TtsConfig
from voiceloop.errors import VoiceloopError
from voiceloop.terminal import printable, tell

REFRESH_S = 0.1
USUAL_COLUMNS = 80
"""Of a terminal that does not tell."""

_LINE = Lock()
"""Held by whoever writes on the terminal while something is loaded."""

OFTEN_WRONG = (
    "the language model is fast and often wrong; voiceloop models pull laptop brings a better one"
)


def engine_names(config: Config) -> str:
    """What a conversation needs, such as `whisper tiny.en, llm starter, espeak`."""
    sound = [] if config.turns.sound == "none" else [config.turns.sound]
    llm = f"llm {llm_name(config.llm)}"
    if server := config.llm.base_url.partition("//")[2].partition("/")[0].rpartition("@")[2]:
        llm += f" at {server}"
    return ", ".join([asr_name(config.asr), *sound, llm, tts_name(config.tts)])


def llm_name(config: LlmConfig) -> str:
    """A language model by its name, or by its engine where that needs none."""
    usual = LlmConfig()
    unnamed = config.engine != usual.engine and config.target == usual.target
    return config.engine if unnamed else _last(config.target)


def asr_name(config: AsrConfig) -> str:
    """A recogniser by its engine and its model."""
    return f"whisper {_last(config.model)}" if config.engine == "whisper" else config.engine


def tts_name(config: TtsConfig) -> str:
    """A synthesizer by its engine, and its model where one was chosen that does not name it."""
    model = _last(config.model)
    return model if model.startswith(config.engine) else f"{config.engine} {model}".strip()


def notes(config: Config) -> tuple[str, ...]:
    """What whoever talks to these models should know."""
    hears = (STARTER_HEARS,) if config.asr.hears_no_people else ()
    answers = (STARTER_ANSWERS,) if config.llm.answers_little else ()
    wrong = (OFTEN_WRONG,) if config.llm.often_wrong else ()
    return hears + answers + wrong


def examples(config: Config) -> tuple[str, ...]:
    """What they might be asked first."""
    return STARTER_EXAMPLES if config.llm.answers_little else EXAMPLES


@contextmanager
def loading(what: str, stream: TextIO) -> Iterator[None]:
    """Say that `what` is being loaded, and for how long, for as long as the context lasts.

    On a terminal the line goes away in the end. Elsewhere it is written once, and ends with the
    seconds that it took, where it did not fail.
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
    """Whether the user says yes, asked in place of what is being loaded; None without a terminal.

    Blocks for as long as they take.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    with _LINE:
        _write(sys.stderr, f"\r\x1b[K{printable(question)} [y/N] ")
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_error(error: VoiceloopError) -> None:
    """One line and a hint on stderr."""
    tell(f"voiceloop: {error.message}", sys.stderr)
    if error.hint:
        tell(f"hint: {error.hint}", sys.stderr)


def _last(name: str) -> str:
    """What a path or a name on the hub ends with."""
    return PurePath(name).name


def _columns(stream: TextIO) -> int:
    """What fits on a line of a terminal, less the last column, behind which some begin a line."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        columns = 0
    return (columns or USUAL_COLUMNS) - 1


def _fitting(text: str, room: int) -> str:
    """As much of `text` as fits: a line that the terminal breaks could not be taken back."""
    return text if len(text) <= room else f"{text[: max(room - 2, 0)]} …"


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
