"""Installs packages by pip, and says meanwhile how far it is.

    .venv/bin/python tools/install.py [--torch auto|cpu|cuda] WHAT PIP INSTALLS...

On Linux, PyPI's torch needs CUDA's libraries, for which a machine without an NVIDIA card has no
use. PyTorch's own index has the same torch without CUDA. It is named to pip only if it answers,
because pip would otherwise try it again and again for every package.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from queue import Empty, SimpleQueue
from typing import IO, TextIO
from urllib.request import urlopen

INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE_S = 3.0

COLLECTED = re.compile(r"(?:Collecting|Processing) (?:\S*/)?([\w.]+(?:-(?!\d)[\w.]+)*)")
DOWNLOADED = re.compile(r"\s*(?:Downloading|Using cached) (?:\S*/)?([^-\s]+-[^-+%\s]+)\S* (\(.*\))")
BUILT = re.compile(r"\s*Building wheel for (\S+)")
INSTALLED = re.compile(r"Installing collected packages: (.*)")


def choice(
    torch: str, system: str, has_card: Callable[[], bool], answers: Callable[[], bool]
) -> tuple[bool, str]:
    """Return whether to name PyTorch's index to pip, and a line for the user.

    `torch` is `auto`, `cpu` or `cuda`. What need not be known for an answer is not asked. On other
    systems than Linux, PyPI's torch has no CUDA, so there is nothing to choose.
    """
    if system != "Linux":
        return False, ""
    if torch == "cuda" or (torch == "auto" and has_card()):
        why = "" if torch == "cuda" else " for the NVIDIA card (without: make setup TORCH=cpu)"
        return False, f"torch with CUDA{why}; this takes 5 GB of disk"
    if answers():
        why = "" if torch == "cpu" else ": no NVIDIA card found (with: make setup TORCH=cuda)"
        return True, f"torch without CUDA{why}"
    return False, (
        "download.pytorch.org, which has torch without CUDA, does not answer: pip takes torch from "
        "where it usually looks; PyPI's has CUDA and needs 3.5 GB more"
    )


def has_card() -> bool:
    """Return whether NVIDIA's driver is here and finds a card."""
    program = shutil.which("nvidia-smi")
    return (
        program is not None and subprocess.run([program, "-L"], capture_output=True).returncode == 0
    )


def answers(index: str) -> bool:
    """Return whether `index` has torch, and says so within `PATIENCE_S` seconds."""
    found: list[int] = []

    def ask() -> None:
        try:
            with urlopen(f"{index}/torch/", timeout=PATIENCE_S) as response:
                found.append(response.status)
        except (OSError, HTTPException):
            return

    # A name server may take longer than the timeout of the connection.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE_S)
    return bool(found)


class Progress:
    """What pip is doing, by the lines that it prints."""

    def __init__(self) -> None:
        self.stage = "preparing"
        self.now = ""
        self._packages = 0

    def hear(self, line: str) -> None:
        """Take note of a line of pip's."""
        if found := COLLECTED.match(line):
            self._packages += 1
            self.stage, self.now = "collecting packages", f"{self._packages}, {found[1]}, "
        elif found := DOWNLOADED.match(line):
            self.now = f"{self._packages}, {found[1]} {found[2]}, "
        elif found := BUILT.match(line):
            self.stage, self.now = f"building {found[1]}", ""
        elif found := INSTALLED.match(line):
            self.stage, self.now = "installing packages", f"{found[1].count(',') + 1}, "


def follow(lines: IO[str], shown: TextIO) -> None:
    """Show on `shown` how far pip is, while it prints `lines`.

    A terminal has one line, rewritten each second. Elsewhere each stage has a line.
    """
    queue: SimpleQueue[str | None] = SimpleQueue()

    def read() -> None:
        for line in lines:
            queue.put(line)
        queue.put(None)

    threading.Thread(target=read, daemon=True).start()
    rewritten, progress, began = shown.isatty(), Progress(), time.monotonic()
    line: str | None = ""
    while line is not None:
        before = progress.stage
        progress.hear(line)
        if progress.stage != before:
            began = time.monotonic()
            if not rewritten:
                print(f"  {progress.stage}", file=shown, flush=True)
        if rewritten:
            text = f"  {progress.stage}: {progress.now}{time.monotonic() - began:.0f} s"
            # The cursor stays in front, so that a warning of pip's begins at the margin.
            text = text[: shutil.get_terminal_size().columns - 1]
            print(f"\x1b[K{text}", end="\r", file=shown, flush=True)
        line = ""
        with suppress(Empty):
            line = queue.get(timeout=1)
    if rewritten:
        print("\x1b[K", end="", file=shown, flush=True)


def main(words: Sequence[str], system: str, index: str = INDEX) -> int:
    """Install what `words` say on `system`, and return the exit status of pip."""
    parser = argparse.ArgumentParser(
        prog="tools/install.py", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--torch", choices=("auto", "cpu", "cuda"))
    options, wanted = parser.parse_known_args(words)
    more: list[str] = []
    if options.torch:
        named, told = choice(options.torch, system, has_card, lambda: answers(index))
        more = ["--extra-index-url", index] if named else []
        if told:
            print(told, flush=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    with subprocess.Popen(
        [*pip, "--progress-bar", "off", *more, *wanted],
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as running:
        assert running.stdout is not None
        follow(running.stdout, sys.stdout)
    return running.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], platform.system()))
    except KeyboardInterrupt:
        sys.exit(130)
