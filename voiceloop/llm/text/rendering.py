"""Render dialogues with chat templates, which are not trusted.

A process of its own renders (`sandbox`), one for all templates. A single operation of a template
may compute for hours or fill the memory, which nothing within this process could end.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SECONDS = 10.0
"""Maximum time for rendering a dialogue, in seconds. Most take a few milliseconds."""


class RenderingError(Exception):
    """The error of a template that cannot be compiled, refuses the dialogue or exceeds a limit."""


class Rendering:
    """A chat template."""

    def __init__(self, text: str, named: Mapping[str, object], seconds: float = SECONDS) -> None:
        """Compile the template `text`.

        `named` maps the names of special tokens, such as `eos_token`, to the tokens. `seconds` is
        the maximum time of each rendering. Raises RenderingError.
        """
        self._text, self._named, self._seconds = text, dict(named), seconds
        _PROCESS.ask(text, None, seconds)

    def render(self, turns: Sequence[Mapping[str, Any]], **given: object) -> str:
        """Return the text of the dialogue `turns`. The template also sees the variables `given`,
        which JSON can hold. Raises RenderingError."""
        variables = {**self._named, "documents": None, **given, "messages": turns}
        return _PROCESS.ask(self._text, variables, self._seconds)


class _RenderingProcess:
    """The process that renders. It is started when it is first needed, and again after it has
    ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def end(self) -> None:
        """End the process, if it runs."""
        with self._lock:
            self._end()

    def ask(self, text: str, variables: Mapping[str, object] | None, seconds: float) -> str:
        """Return what the template `text` makes of `variables`; an empty text if there are none."""
        question = json.dumps([text, variables], default=dict).encode()
        with self._lock:
            answer, late = self._answer(question, seconds)
        if not answer:
            why = "it comes to no end" if late else "it ends the process that renders it"
            raise RenderingError(why)
        made, why = json.loads(answer)
        if why:
            raise RenderingError(why)
        return made

    def _answer(self, question: bytes, seconds: float) -> tuple[bytes, bool]:
        """Return the answer to `question`, which is empty if the process has ended instead, and
        whether it was ended because `seconds` were over."""
        process = self._running()
        assert process.stdin and process.stdout
        answer, late = b"", threading.Event()

        def end_late() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end_late)
        timer.start()
        try:
            process.stdin.write(question + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:  # the process has ended
            pass
        finally:
            timer.cancel()
            timer.join()
            if late.is_set() or not answer:
                self._end()
        return answer, late.is_set()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).with_name("sandbox.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # keeps Ctrl-C away from it
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            with self._process as process:  # closes the pipes, and waits
                process.kill()
            self._process = None


_PROCESS = _RenderingProcess()


@atexit.register
def end_rendering() -> None:
    """End the process that renders, until it is needed again."""
    _PROCESS.end()
